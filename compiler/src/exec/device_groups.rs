//! Which devices a collective brings together.
//!
//! A device is a (replica, partition) pair with number `replica * partitions + partition`. What
//! the numbers in `replica_groups` mean depends on `channel_id` and `use_global_device_ids`
//! (XLA's `GetCollectiveOpGroupMode`).

use slabplan_ir::Opcode;
use slabplan_ir::attr::{AttrName, ReplicaGroups};
use slabplan_ir::entity::InstrId;
use slabplan_ir::module::Module;

use crate::exec::{ExecError, mesh_groups};

/// Groups that cover all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    groups: Box<[Box<[usize]>]>,
    /// The group of each device.
    of_device: Box<[usize]>,
}

impl Groups {
    /// Devices in the largest group.
    pub(crate) fn size(&self) -> usize {
        self.groups.iter().map(|g| g.len()).max().unwrap_or(0)
    }

    /// The devices of the group that `device` is in, in the group's order.
    pub(crate) fn of(&self, device: usize) -> &[usize] {
        &self.groups[self.of_device[device]]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Numbers are replicas; each partition has its own groups.
    Replica,
    /// Numbers are partitions; each replica has its own groups.
    Partition,
    /// Numbers are replicas; all their partitions belong to the group.
    ReplicaAndPartition,
    /// Numbers are devices.
    Device,
}

/// The groups of the collective `instr`.
pub(crate) fn device_groups(module: &Module, instr: InstrId) -> Result<Groups, ExecError> {
    let (replicas, partitions) = (
        module.replica_count as usize,
        module.num_partitions as usize,
    );
    let mode = mode(module, instr);
    let numbers = match mode {
        Mode::Replica | Mode::ReplicaAndPartition => replicas,
        Mode::Partition => partitions,
        Mode::Device => replicas * partitions,
    };
    let listed = listed(module, instr, numbers)?;
    let device = |replica: usize, partition: usize| replica * partitions + partition;
    let mut groups: Vec<Box<[usize]>> = Vec::new();
    match mode {
        Mode::Device => groups.extend(listed.into_iter().map(Vec::into_boxed_slice)),
        Mode::Replica => {
            for p in 0..partitions {
                groups.extend(
                    listed
                        .iter()
                        .map(|g| g.iter().map(|&r| device(r, p)).collect()),
                );
            }
        }
        Mode::Partition => {
            for r in 0..replicas {
                groups.extend(
                    listed
                        .iter()
                        .map(|g| g.iter().map(|&p| device(r, p)).collect()),
                );
            }
        }
        Mode::ReplicaAndPartition => groups.extend(listed.iter().map(|g| {
            (0..partitions)
                .flat_map(|p| g.iter().map(move |&r| device(r, p)))
                .collect()
        })),
    }
    cover(module, instr, groups, replicas * partitions)
}

fn mode(module: &Module, instr: InstrId) -> Mode {
    use Opcode as O;
    let i = &module.instrs[instr];
    let channel = i.int(AttrName::ChannelId).is_some();
    match i.opcode {
        O::AllToAll
        | O::RaggedAllToAll
        | O::CollectivePermute
        | O::CollectivePermuteStart
        | O::CollectiveBroadcast => {
            if channel {
                Mode::Partition
            } else {
                Mode::Replica
            }
        }
        _ if !channel => Mode::Replica,
        _ if i.flag(AttrName::UseGlobalDeviceIds) => Mode::Device,
        _ => Mode::ReplicaAndPartition,
    }
}

/// The groups as written; one of all numbers where none are.
fn listed(module: &Module, instr: InstrId, numbers: usize) -> Result<Vec<Vec<usize>>, ExecError> {
    let error = |what: &str| ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: what.to_owned(),
    };
    let groups: Vec<Vec<i64>> = match module.instrs[instr].replica_groups() {
        None => Vec::new(),
        Some(ReplicaGroups::List(groups)) => groups.clone(),
        Some(ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        }) => iota(dims, reshape, transpose, numbers)
            .ok_or_else(|| error("its groups do not fit the number of devices"))?,
        Some(ReplicaGroups::Raw(text)) => mesh_groups::listed(module.str(*text), numbers)
            .ok_or_else(|| error("its groups do not fit their mesh or the number of devices"))?,
    };
    if groups.iter().all(Vec::is_empty) {
        return Ok(vec![(0..numbers).collect()]);
    }
    groups
        .into_iter()
        .map(|g| {
            g.into_iter()
                .map(|n| usize::try_from(n).ok().filter(|&n| n < numbers))
                .collect()
        })
        .collect::<Option<_>>()
        .ok_or_else(|| {
            error(
                "its groups name devices that the module does not have: give replica_count or \
                 num_partitions in its header, or name the devices it is for",
            )
        })
}

/// `[groups,size]<=[reshape]T(transpose)`: the numbers 0, 1, ... in the shape `reshape`,
/// transposed, and cut into groups.
pub(crate) fn iota(
    dims: &[i64],
    reshape: &[i64],
    transpose: &[i64],
    numbers: usize,
) -> Option<Vec<Vec<i64>>> {
    let size = |d: &[i64]| {
        d.iter().try_fold(1usize, |n, &d| {
            usize::try_from(d).ok().and_then(|d| n.checked_mul(d))
        })
    };
    let total = size(reshape)?;
    let per_group = usize::try_from(*dims.last()?).ok().filter(|&n| n > 0)?;
    if total != size(dims)? || total > numbers {
        return None;
    }
    let rank = reshape.len();
    let order: Vec<usize> = if transpose.is_empty() {
        (0..rank).collect()
    } else {
        transpose.iter().map(|&t| t as usize).collect()
    };
    if order.len() != rank || order.iter().any(|&d| d >= rank) {
        return None;
    }
    let mut strides = vec![1usize; rank];
    for d in (1..rank).rev() {
        strides[d - 1] = strides[d] * reshape[d] as usize;
    }
    let numbers: Vec<i64> = (0..total)
        .map(|mut n| {
            let mut number = 0;
            for &d in order.iter().rev() {
                let extent = reshape[d] as usize;
                number += n % extent * strides[d];
                n /= extent;
            }
            number as i64
        })
        .collect();
    Some(numbers.chunks(per_group).map(<[i64]>::to_vec).collect())
}

/// Whether groups may be of different sizes: where the result's shape does not depend on it.
fn may_differ(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AllReduce | Opcode::AllReduceStart | Opcode::CollectiveBroadcast
    )
}

fn cover(
    module: &Module,
    instr: InstrId,
    groups: Vec<Box<[usize]>>,
    devices: usize,
) -> Result<Groups, ExecError> {
    let error = |what: &str| ExecError::Unsupported {
        instr: module.name_of(instr).to_owned(),
        what: what.to_owned(),
    };
    let mut of_device = vec![None; devices];
    for (n, group) in groups.iter().enumerate() {
        if group.len() != groups[0].len() && !may_differ(module.instrs[instr].opcode) {
            return Err(error(
                "its groups have different sizes, which only all-reduce and collective-broadcast may have",
            ));
        }
        for &d in group {
            if of_device[d].replace(n).is_some() {
                return Err(error("a device is in two groups"));
            }
        }
    }
    let of_device = of_device
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| error("a device is in no group"))?;
    Ok(Groups {
        groups: groups.into(),
        of_device,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iota_groups_are_cut_from_the_transposed_numbers() {
        assert_eq!(
            iota(&[2, 4], &[8], &[], 8).unwrap(),
            [[0, 1, 2, 3], [4, 5, 6, 7]]
        );
        // The numbers as 2 rows of 4, read column by column.
        assert_eq!(
            iota(&[4, 2], &[2, 4], &[1, 0], 8).unwrap(),
            [[0, 4], [1, 5], [2, 6], [3, 7]]
        );
        assert_eq!(iota(&[2, 4], &[4], &[], 8), None);
        assert_eq!(iota(&[4, 2], &[2, 4], &[1, 7], 8), None);
        assert_eq!(iota(&[4, 2], &[2, 4], &[], 4), None);
    }
}
