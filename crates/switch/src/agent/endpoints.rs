//! The sockets on which the switch listens, and the controllers that it connects to.

use std::cell::Cell;
use std::rc::Rc;

use tokio::task::JoinHandle;

use crate::config::{Address, ControllerSettings};
use crate::control::ConnectionState;

/// The tasks of listening sockets and of connections to controllers.
#[derive(Default)]
pub(super) struct Endpoints {
    listeners: Vec<(Address, Task)>,
    controllers: Vec<(ControllerSettings, Rc<Cell<ConnectionState>>, Task)>,
}

/// A task that ends when this is dropped.
struct Task(Option<JoinHandle<()>>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

impl Endpoints {
    /// Notes an address that the switch listens on. `task` is `None` for the address that is
    /// open whatever the settings are.
    pub(super) fn add_listener(&mut self, address: Address, task: Option<JoinHandle<()>>) {
        self.listeners.push((address, Task(task)));
    }

    /// Notes a controller that the switch keeps a connection to.
    pub(super) fn add_controller(
        &mut self,
        settings: ControllerSettings,
        connection: Rc<Cell<ConnectionState>>,
        task: JoinHandle<()>,
    ) {
        self.controllers
            .push((settings, connection, Task(Some(task))));
    }

    pub(super) fn listeners(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(|(address, _)| address)
    }

    /// Returns the controllers that the switch connects to, and the states of the connections.
    pub(super) fn controllers(&self) -> impl Iterator<Item = (&Address, ConnectionState)> {
        let controllers = self.controllers.iter();
        controllers.map(|(settings, state, _)| (&settings.address, state.get()))
    }

    pub(super) fn settings(&self) -> impl Iterator<Item = &ControllerSettings> {
        self.controllers.iter().map(|(settings, _, _)| settings)
    }

    /// Closes a listening socket. Its connections stay.
    pub(super) fn close(&mut self, address: &Address) {
        self.listeners.retain(|(listener, _)| listener != address);
    }

    /// Ends the connection to a controller.
    pub(super) fn disconnect(&mut self, controller: &ControllerSettings) {
        self.controllers
            .retain(|(settings, _, _)| settings != controller);
    }
}
