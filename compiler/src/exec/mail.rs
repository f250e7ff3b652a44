//! Messages from one device to another: what `send` gives and `recv` takes.
//!
//! Between two devices a channel holds one message. Who sends again waits until that is taken, who
//! receives waits until it is there. Channels have the numbers that the module gives; a `recv` that waits for
//! the token of a `send` has a channel with it alone, since JAX gives all of them one number.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::InstrId;
use slabplan_ir::instr::Instr;
use slabplan_ir::module::Module;

use crate::exec::ExecError;
use crate::exec::program::{Leaf, Program};
use crate::exec::run::STAGE_ALIGN;
use crate::exec::slab::Slab;
use crate::frontend::proto::write::frontend_attributes;

/// A `send` or a `recv`.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Its name.
    pub(crate) instr: Box<str>,
    /// What is sent, or where what is received goes.
    pub(crate) leaf: Leaf,
    pub(crate) direction: Direction,
    /// Bytes of the dense array.
    pub(crate) bytes: usize,
    /// The slot of each device that takes part.
    pub(crate) slots: Box<[Option<usize>]>,
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Send,
    Receive,
}

/// Channel, the `send` if it has the channel for itself, sender and receiver.
type Key = (i64, Option<InstrId>, usize, usize);

/// The channels of a program, each between two devices.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Bytes of the largest message.
    bytes: IndexMap<Key, usize, FxBuildHasher>,
    /// Each `send` whose token a `recv` waits for.
    answered: BTreeSet<InstrId>,
}

impl Slots {
    /// No channels yet of `module`.
    pub(crate) fn new(module: &Module) -> Self {
        let receives = module.instrs.values().filter(|i| i.opcode == Opcode::Recv);
        Self {
            bytes: IndexMap::default(),
            answered: receives.filter_map(|i| awaited(module, i)).collect(),
        }
    }

    /// The slot of each device for the transfer `instr` of an array of `bytes`.
    ///
    /// # Errors
    /// No partner is named, or one that does not exist.
    pub(crate) fn of_devices(
        &mut self,
        module: &Module,
        instr: InstrId,
        direction: Direction,
        bytes: usize,
    ) -> Result<Box<[Option<usize>]>, ExecError> {
        let (replicas, partitions) = (
            module.replica_count as usize,
            module.num_partitions as usize,
        );
        let i = &module.instrs[instr];
        let channel = i.int(AttrName::ChannelId).unwrap_or(0);
        let send = match direction {
            Direction::Send => self.answered.get(&instr).copied(),
            Direction::Receive => awaited(module, i),
        };
        let mut slots = vec![None; replicas * partitions];
        for (from, to) in pairs(module, instr)? {
            // Numbers are partitions; replicas where there are no partitions.
            let groups = if partitions > 1 { replicas } else { 1 };
            for group in 0..groups {
                let (from, to) = (group * partitions + from, group * partitions + to);
                let entry = self.bytes.entry((channel, send, from, to));
                let slot = entry.index();
                let most = entry.or_insert(0);
                *most = bytes.max(*most);
                let mine = match direction {
                    Direction::Send => from,
                    Direction::Receive => to,
                };
                if slots[mine].replace(slot).is_some() {
                    let what = format!("device {mine} has two partners");
                    return Err(unsupported(module, instr, what));
                }
            }
        }
        Ok(slots.into())
    }

    /// Where each slot begins, and the bytes of all.
    fn places(&self) -> (Vec<usize>, usize) {
        let mut end = 0usize;
        let place = |&bytes: &usize| {
            let start = end;
            end = end
                .saturating_add(bytes)
                .div_ceil(STAGE_ALIGN)
                .saturating_mul(STAGE_ALIGN);
            start
        };
        let starts = self.bytes.values().map(place).collect();
        (starts, end)
    }

    /// Bytes of all slots.
    pub(crate) fn total(&self) -> usize {
        self.places().1
    }
}

/// The `send` whose token a `recv` waits for.
fn awaited(module: &Module, recv: &Instr) -> Option<InstrId> {
    let done = &module.instrs[*recv.operands.first()?];
    let send = *done.operands.first()?;
    let is_send = done.opcode == Opcode::SendDone && module.instrs[send].opcode == Opcode::Send;
    is_send.then_some(send)
}

/// Sender and receiver of each message, as the module numbers them.
fn pairs(module: &Module, instr: InstrId) -> Result<Vec<(usize, usize)>, ExecError> {
    let i = &module.instrs[instr];
    let text = i.raw(AttrName::FrontendAttributes);
    let attributes = text.and_then(|t| frontend_attributes(module.str(t)).ok());
    let listed = attributes
        .as_ref()
        .and_then(|a| a.map.get("_xla_send_recv_source_target_pairs"));
    let Some(listed) = listed.filter(|_| !i.flag(AttrName::IsHostTransfer)) else {
        let what = "a transfer by send and recv has no partner here: name source_target_pairs, or use \
                    collective-permute between devices, arguments and results with the host";
        return Err(unsupported(module, instr, what.to_owned()));
    };
    let devices = match module.num_partitions {
        1 => module.replica_count,
        n => n,
    };
    let numbers: Option<Vec<usize>> = listed
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok().filter(|&n| (n as u64) < devices))
        .collect();
    numbers
        .filter(|n| n.len().is_multiple_of(2))
        .map(|n| n.chunks(2).map(|pair| (pair[0], pair[1])).collect())
        .ok_or_else(|| {
            let what = format!("{listed} are not pairs of its {devices} devices");
            unsupported(module, instr, what)
        })
}

fn unsupported(module: &Module, instr: InstrId, what: String) -> ExecError {
    ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what,
    }
}

/// The messages on their way.
#[derive(Debug)]
pub(crate) struct Mail {
    bytes: Slab,
    starts: Vec<usize>,
    /// For each slot, the transfer that filled it.
    sent: Vec<Option<u32>>,
}

impl Mail {
    /// Empty slots for `program`.
    pub(crate) fn new(program: &Program) -> Result<Self, ExecError> {
        let (starts, total) = program.mail.places();
        Ok(Self {
            bytes: Slab::new(total, 0, STAGE_ALIGN)?,
            sent: vec![None; starts.len()],
            starts,
        })
    }

    /// Forgets all messages.
    pub(crate) fn clear(&mut self) {
        self.sent.fill(None);
    }

    /// Lets `read` write a message of transfer `n`; false while the slot is full.
    pub(crate) fn send(
        &mut self,
        slot: usize,
        n: u32,
        bytes: usize,
        read: impl FnOnce(&mut [u8]),
    ) -> bool {
        if self.sent[slot].is_some() {
            return false;
        }
        read(&mut self.bytes.bytes_mut()[self.starts[slot]..][..bytes]);
        self.sent[slot] = Some(n);
        true
    }

    /// Takes the message in a slot for `transfer`; none while it is empty.
    ///
    /// # Errors
    /// The message is of another size than what is received.
    pub(crate) fn receive(
        &mut self,
        program: &Program,
        slot: usize,
        transfer: &Transfer,
    ) -> Result<Option<&[u8]>, ExecError> {
        let Some(sender) = self.sent[slot].take() else {
            return Ok(None);
        };
        let sender = &program.transfers[sender as usize];
        if sender.bytes != transfer.bytes {
            return Err(ExecError::Message {
                sender: sender.instr.to_string(),
                sent: sender.bytes,
                receiver: transfer.instr.to_string(),
                received: transfer.bytes,
            });
        }
        Ok(Some(
            &self.bytes.bytes()[self.starts[slot]..][..transfer.bytes],
        ))
    }

    /// # Errors
    /// A message that nobody took.
    pub(crate) fn check_all_taken(&self, program: &Program) -> Result<(), ExecError> {
        let left = self
            .sent
            .iter()
            .enumerate()
            .find_map(|(n, s)| Some((n, (*s)?)));
        let Some((slot, sender)) = left else {
            return Ok(());
        };
        let keys = program.mail.bytes.get_index(slot);
        let (from, to) = keys.map_or((0, 0), |(key, _)| (key.2, key.3));
        Err(ExecError::NotReceived {
            instr: program.transfers[sender as usize].instr.to_string(),
            from,
            to,
        })
    }
}
