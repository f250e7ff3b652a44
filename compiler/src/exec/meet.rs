//! Where devices meet: collectives, messages, and waiting in vain for either.

use crate::exec::error::ExecError;
use crate::exec::mail::Direction;
use crate::exec::program::Program;
use crate::exec::run::{Device, Limits, State, Workspace};
use crate::exec::transfer::write_result;

/// Carries out the collectives whose groups are complete. Returns whether there was one.
pub(super) fn meet(
    program: &Program,
    devices: &mut [Device],
    work: &mut Workspace,
    limits: Limits,
) -> Result<bool, ExecError> {
    let mut met = false;
    for first in 0..devices.len() {
        let State::Waiting(n) = devices[first].state else {
            continue;
        };
        let collective = &program.collectives[n as usize];
        let group = collective.groups.of(first);
        if group.iter().any(|&d| devices[d].state != State::Waiting(n)) {
            continue;
        }
        for (member, &d) in group.iter().enumerate() {
            for (k, &leaf) in collective.operands.iter().enumerate() {
                let range = collective.operand_range(member, k);
                devices[d].read(program, leaf, &mut work.exchange.bytes_mut()[range]);
            }
        }
        for (member, &d) in group.iter().enumerate() {
            for (k, &leaf) in collective.results.iter().enumerate() {
                let of = (member, group.len());
                collective.run(of, k, work.exchange.bytes_mut(), &mut work.inner)?;
                let at = collective.results_at();
                let len = program.info(leaf).map.dense_bytes();
                let result = &work.exchange.bytes()[at..at + len];
                write_result(program, &mut devices[d].slabs, leaf, result, limits);
            }
            devices[d].state = State::Running;
        }
        met = true;
    }
    Ok(met)
}

/// Sends or receives; false if the partner is not ready.
pub(super) fn transfer(
    program: &Program,
    n: u32,
    device: &mut Device,
    number: usize,
    work: &mut Workspace,
    limits: Limits,
) -> Result<bool, ExecError> {
    let transfer = &program.transfers[n as usize];
    match (transfer.direction, transfer.slots[number]) {
        (Direction::Send, None) => Ok(true),
        (Direction::Send, Some(slot)) => Ok(work.mail.send(slot, n, transfer.bytes, |message| {
            device.read(program, transfer.leaf, message);
        })),
        (Direction::Receive, None) => {
            // As XLA does: what nobody sends is zero.
            let bytes = device.slabs[transfer.leaf.slab as usize].bytes_mut();
            bytes[program.bytes_of(transfer.leaf)].fill(0);
            Ok(true)
        }
        (Direction::Receive, Some(slot)) => {
            let message = work.mail.receive(program, slot, transfer)?;
            if let Some(message) = message {
                write_result(program, &mut device.slabs, transfer.leaf, message, limits);
            }
            Ok(message.is_some())
        }
    }
}

/// Where each device waits.
pub(super) fn deadlock(program: &Program, devices: &[Device]) -> ExecError {
    let waiting: Vec<String> = devices
        .iter()
        .enumerate()
        .map(|(n, d)| match d.state {
            State::Finished => format!("device {n} has ended"),
            State::Blocked => format!("device {n} waits at %{}", program.name(d.next)),
            _ => format!(
                "device {n} waits at %{}",
                program.name(d.next.saturating_sub(1))
            ),
        })
        .collect();
    ExecError::Deadlock {
        waiting: waiting.join(", "),
    }
}
