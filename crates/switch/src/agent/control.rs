//! The control socket: requests of people's commands.

use std::future::pending;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use classyard_datapath::PortNo;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use super::connection::Shared;
use super::listen::{self, SocketFile};
use super::ports::{Queues, open};
use super::{capture, load_tls, megaflows, status, trace};
use crate::config::{PortSettings, SwitchSettings};
use crate::control::{MAX_REQUEST_BYTES, ReloadStatus, Reply, Request};
use crate::stop::StopHandle;

/// The state, and other parts that requests need.
pub(super) struct Control {
    pub(super) state: Shared,
    pub(super) stop: StopHandle,
    /// The configuration file, if the switch was started with one.
    pub(super) file: Option<PathBuf>,
}

/// Connections to the control socket at a time. Each may have a request and a reply in memory.
const MAX_CONTROL_CONNECTIONS: usize = 16;

/// Serves the control socket.
pub(super) async fn run(control: Rc<Control>, listener: UnixListener, _file: SocketFile) {
    let places = Arc::new(Semaphore::new(MAX_CONTROL_CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    let limit = MAX_CONTROL_CONNECTIONS;
                    let reason =
                        format!("{limit} commands are connected, and more are not allowed");
                    let reply = Reply::error(&reason).line();
                    // The other end may have gone.
                    let _gone = stream.try_write(reply.as_bytes());
                    continue;
                };
                let control = Rc::clone(&control);
                spawn_local(async move {
                    let _place = place;
                    if let Err(error) = control.serve(stream).await {
                        tracing::debug!("a control connection ends: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("a control connection cannot be taken: {error}");
                tokio::time::sleep(listen::LISTENING_PAUSE).await;
            }
        }
    }
}

/// Returns when the other end closes the connection without another request.
async fn end_of(reader: &mut (impl AsyncBufRead + Unpin)) {
    match reader.fill_buf().await {
        Ok(bytes) if !bytes.is_empty() => pending().await,
        _ => {}
    }
}

impl Control {
    /// Answers the requests of a connection, one after the other.
    async fn serve(&self, stream: UnixStream) -> std::io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = MAX_REQUEST_BYTES as u64 + 2;
            let count = (&mut reader)
                .take(limit)
                .read_until(b'\n', &mut line)
                .await?;
            if count == 0 {
                return Ok(());
            }
            let request = Request::parse(&String::from_utf8_lossy(&line));
            let is_whole = line.ends_with(b"\n");
            let reply = match request {
                Ok(Request::Capture { port, limits }) => {
                    let state = &self.state;
                    return capture::capture(state, port.as_deref(), limits, reader, writer).await;
                }
                Ok(Request::Trace { packet, near }) => {
                    let answer = trace::trace(&self.state, &packet, near);
                    tokio::select! {
                        biased;
                        answer = answer => match answer {
                            Ok(trace) => Reply::ok(&trace),
                            Err(reason) => Reply::error(&reason),
                        },
                        // The client no longer waits for the packet.
                        () = end_of(&mut reader) => return Ok(()),
                    }
                }
                Ok(request) => self.answer(request).await,
                Err(error) => Reply::error(&error),
            };
            writer.write_all(reply.line().as_bytes()).await?;
            if !is_whole {
                return Ok(());
            }
        }
    }

    async fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Show => Reply::ok(&status::status(&self.state).await),
            Request::AddPort { port } => self.when_done(self.add_port(port)).await,
            Request::DelPort { name } => self.when_done(self.remove_port(&name)).await,
            Request::Dump => Reply::ok(&self.state.borrow().dump()),
            Request::Reload => match self.reload().await {
                Ok(status) => Reply::ok(&status),
                Err(reason) => Reply::error(&reason),
            },
            Request::Stop => {
                self.stop.stop();
                Reply::done()
            }
            Request::DumpMegaflows { limit } => match megaflows::list(&self.state, limit).await {
                Ok(list) => Reply::ok(&list),
                Err(reason) => Reply::error(&reason),
            },
            Request::Capture { .. } | Request::Trace { .. } => {
                unreachable!("the connection serves them")
            }
        }
    }

    /// Returns the reply to a change, after the workers have carried it out.
    async fn when_done(&self, changed: Result<(), String>) -> Reply {
        match changed {
            Ok(()) => {
                status::caches(&self.state).await;
                Reply::done()
            }
            Err(reason) => Reply::error(&reason),
        }
    }

    fn add_port(&self, port: PortSettings) -> Result<(), String> {
        let added = self.open_port(port)?;
        self.state.borrow_mut().give_queues(vec![added]);
        Ok(())
    }

    /// Opens and adds a port. The workers do not have its queues yet.
    fn open_port(&self, port: PortSettings) -> Result<(PortNo, Queues), String> {
        let mut state = self.state.borrow_mut();
        state.check_new_port(&port)?;
        let opened = open(&port.device, state.workers.len());
        let (device, queues) = opened.map_err(|error| format!("port {}: {error}", port.name))?;
        Ok((state.add_device(port, device)?, queues))
    }

    fn remove_port(&self, name: &str) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let port = state.port_named(name)?;
        state.remove_port(port);
        Ok(())
    }

    /// Reads the configuration file and its PEM files again, and changes ports, controllers and
    /// listeners. Flows stay, and so do connections over TLS.
    pub(super) async fn reload(&self) -> Result<ReloadStatus, String> {
        let Some(file) = &self.file else {
            return Err("the switch was started without a configuration file".to_owned());
        };
        let new = SwitchSettings::read(file).map_err(|error| error.to_string())?;
        let tls = load_tls(&new).map_err(|error| error.to_string())?;
        self.state.borrow_mut().tls = tls.map(Rc::new);
        let difference = self.state.borrow().settings().difference(&new);
        let mut status = ReloadStatus::from(&difference);
        for port in &difference.removed_ports {
            if let Err(reason) = self.remove_port(&port.name) {
                status.fail_removed_port(&port.name, reason);
            }
        }
        let mut added = Vec::new();
        for port in &difference.added_ports {
            match self.open_port(port.clone()) {
                Ok(port) => added.push(port),
                Err(reason) => status.fail_added_port(&port.name, reason),
            }
        }
        self.state.borrow_mut().give_queues(added);
        for controller in &difference.removed_controllers {
            self.state.borrow_mut().endpoints.disconnect(controller);
        }
        for controller in &difference.added_controllers {
            listen::connect(&self.state, controller);
        }
        for address in &difference.removed_listeners {
            self.state.borrow_mut().endpoints.close(address);
        }
        for address in &difference.added_listeners {
            if let Err(error) = listen::listen(&self.state, address).await {
                status.fail_added_listener(&address.to_string(), error.to_string());
            }
        }
        for reason in &status.failures {
            tracing::error!("reload: {reason}");
        }
        tracing::info!("the configuration was read again");
        Ok(status)
    }
}
