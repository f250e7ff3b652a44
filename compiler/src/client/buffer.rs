//! An array on a device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slabplan_ir::padding::padded_bytes;
use slabplan_ir::{ArrayShape, Target};

use super::device::Reservation;
use super::{ClientError, Device};
use crate::exec::HostArray;
use crate::passes::default_layout;

/// An array that lives on a device. Clones are the same array.
#[derive(Clone, Debug)]
pub struct Buffer {
    name: Arc<str>,
    device: Arc<Device>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
enum State {
    /// The elements, and the device's bytes that they take.
    Here {
        array: HostArray,
        memory: Reservation,
    },
    /// A program took it.
    Donated { program: String, argument: usize },
}

impl Buffer {
    pub(super) fn new(
        name: &str,
        array: HostArray,
        device: &Arc<Device>,
        target: &Target,
    ) -> Result<Self, ClientError> {
        let shape = ArrayShape::new(array.element_type, &array.dims);
        let bytes =
            padded_bytes(&default_layout(&shape, target)).map_err(|source| ClientError::Size {
                buffer: name.to_owned(),
                source,
            })?;
        let alignment = target.space(0).map(|s| s.alignment);
        let bytes = alignment
            .and_then(|a| a.round_up(bytes).ok())
            .unwrap_or(bytes);
        let memory =
            device.reserve(&format!("buffer {name} {}", array.type_name()), bytes.get())?;
        Ok(Self {
            name: name.into(),
            device: Arc::clone(device),
            state: Arc::new(Mutex::new(State::Here { array, memory })),
        })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether it is still there: no program has taken it.
    pub fn is_alive(&self) -> bool {
        matches!(*self.state(), State::Here { .. })
    }

    /// A copy of its elements.
    ///
    /// # Errors
    /// [`ClientError::Donated`].
    pub fn to_host(&self) -> Result<HostArray, ClientError> {
        self.read(HostArray::clone)
    }

    /// Bytes of the device that it takes, padding included; 0 once it is donated.
    pub fn device_bytes(&self) -> u64 {
        match &*self.state() {
            State::Here { memory, .. } => memory.bytes(),
            State::Donated { .. } => 0,
        }
    }

    /// Calls `f` with its elements, without copying them.
    ///
    /// # Errors
    /// [`ClientError::Donated`].
    pub fn read<T>(&self, f: impl FnOnce(&HostArray) -> T) -> Result<T, ClientError> {
        match &*self.state() {
            State::Here { array, .. } => Ok(f(array)),
            State::Donated { program, argument } => Err(ClientError::Donated {
                buffer: self.name.to_string(),
                program: program.clone(),
                argument: *argument,
            }),
        }
    }

    /// Gives it to a program, for good.
    pub(super) fn donate(&self, program: &str, argument: usize) {
        *self.state() = State::Donated {
            program: program.to_owned(),
            argument,
        };
    }

    /// Whether both are the same array.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
