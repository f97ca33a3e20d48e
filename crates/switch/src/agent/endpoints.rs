//! The sockets on which the switch listens, and the controllers that it connects to.

use std::cell::Cell;
use std::rc::Rc;

use tokio::task::{JoinHandle, spawn_local};

use super::connection::Shared;
use super::listen::{ListenError, Listener, keep_connected};
use crate::config::{Address, ControllerSettings};
use crate::control::ConnectionState;

/// The tasks of listening sockets and of connections to controllers.
#[derive(Default)]
pub(super) struct Endpoints {
    listeners: Vec<(Address, Task)>,
    controllers: Vec<(ControllerSettings, Rc<Cell<ConnectionState>>, Task)>,
}

/// A task that ends when this is dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Endpoints {
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

/// Listens on an address.
///
/// # Errors
/// [`ListenError`] if the address cannot be used.
pub(super) async fn listen(state: &Shared, address: &Address) -> Result<(), ListenError> {
    let listener = Listener::open(address).await?;
    let task = Task(spawn_local(listener.run(Rc::clone(state))));
    let endpoints = &mut state.borrow_mut().endpoints;
    endpoints.listeners.push((address.clone(), task));
    Ok(())
}

/// Connects to a controller, and keeps the connection.
pub(super) fn connect(state: &Shared, controller: &ControllerSettings) {
    let connection = Rc::new(Cell::new(ConnectionState::Connecting));
    let kept = keep_connected(Rc::clone(state), controller.clone(), Rc::clone(&connection));
    let task = Task(spawn_local(kept));
    let endpoints = &mut state.borrow_mut().endpoints;
    endpoints
        .controllers
        .push((controller.clone(), connection, task));
}
