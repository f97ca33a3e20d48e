//! The agent's thread: it has the pipeline, the ports and the sessions of controllers.
//!
//! All tasks run on one thread, so they share the state of the switch without locks.
//!
//! ```text
//! connections ─▶ bytes ─▶ State ─▶ openflow::Agent, Pipeline
//! workers ─▶ reports ─▶   State ─▶ commands ─▶ workers
//! links, timers, control socket ─▶ State
//! ```
//! | module | contents |
//! |---|---|
//! | `packet_ins` | packets for controllers: fair between ports, at a limited rate |
//! | `ports` | the open ports |
//! | `state` | the state of the switch, and what each event does |
//! | `connection` | a connection of a controller |
//! | `listen` | listening sockets, and connections to controllers |
//! | `endpoints` | the open sockets and connections |
//! | `status`, `capture` | the state of the switch, and captured frames, for people |
//! | `trace`, `megaflows` | traces of packets, and the megaflows of the workers, for people |
//! | `control` | the control socket |
//! | `tasks` | the tasks of the thread |

mod capture;
mod connection;
mod control;
mod endpoints;
mod listen;
mod megaflows;
mod packet_ins;
mod ports;
mod refusals;
mod state;
mod status;
mod tasks;
mod trace;

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use classyard_datapath::pipeline::Pipeline;
use classyard_openflow::agent::SwitchIdentity;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::Clock;
use crate::config::{Address, SwitchSettings};
use crate::control::{ControlClient, socket_path};
use crate::error::SwitchError;
use crate::stop::StopHandle;
use crate::tls::{Tls, TlsError};
use crate::worker::WorkerHandle;

use connection::Shared;
use control::Control;
use listen::{ListenError, Listener};
pub(crate) use ports::{Opened, open};
use state::State;
use tasks::{LinkThread, PlannerThread};

/// The parts of a switch that starts.
pub(crate) struct Parts {
    pub(crate) identity: SwitchIdentity,
    pub(crate) settings: SwitchSettings,
    pub(crate) pipeline: Pipeline,
    pub(crate) workers: Vec<WorkerHandle>,
    pub(crate) ports: Vec<Opened>,
    /// Keys and certificates, if the settings have any.
    pub(crate) tls: Option<Tls>,
    /// Workers notify it of reports.
    pub(crate) news: Arc<Notify>,
    pub(crate) clock: Clock,
    pub(crate) stop: StopHandle,
    pub(crate) handles_signals: bool,
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
}

/// A switch that has started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ready {
    /// The name.
    pub name: String,
    /// The datapath id.
    pub datapath_id: u64,
    /// The number of ports.
    pub ports: usize,
    /// The addresses on which the switch listens.
    pub listeners: Vec<Address>,
}

/// Returns the time since the first call, as the clock of flow caches.
pub(crate) fn cache_clock() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Makes the folder of sockets, and checks that no switch of the same name uses it.
///
/// # Errors
/// [`SwitchError`] if the folder cannot be made, or if a switch of the same name is running.
pub(crate) fn check_run_dir(settings: &SwitchSettings) -> Result<(), SwitchError> {
    let folder = &settings.run_dir;
    std::fs::create_dir_all(folder)
        .map_err(|error| SwitchError::RunFolder(folder.display().to_string(), error))?;
    let path = socket_path(folder, &settings.name);
    if ControlClient::connect(&path).is_ok() {
        let in_use = io::ErrorKind::AddrInUse.into();
        let error = ListenError::new(&Address::Unix(path), in_use);
        return Err(SwitchError::Listen(error.to_string()));
    }
    Ok(())
}

/// Reads the PEM files of the settings, if there are any.
///
/// # Errors
/// [`TlsError`]: a file cannot be used, or an `ssl:` address has no files.
pub(crate) fn load_tls(settings: &SwitchSettings) -> Result<Option<Tls>, TlsError> {
    let controllers = settings.controllers.iter();
    let mut addresses = controllers
        .map(|controller| &controller.address)
        .chain(&settings.listeners);
    match &settings.tls {
        Some(files) => Tls::load(files).map(Some),
        None if addresses.any(|address| matches!(address, Address::Ssl { .. })) => {
            Err(TlsError::NoFiles)
        }
        None => Ok(None),
    }
}

/// Runs the agent on this thread until the switch is stopped.
pub(crate) fn run(parts: Parts, on_ready: impl FnOnce(&Ready)) -> Result<(), SwitchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| SwitchError::System("the agent's thread", error))?;
    let planner = PlannerThread::start(parts.pipeline.planner());
    let (_planner, plans) =
        planner.map_err(|error| SwitchError::System("the planner's thread", error))?;
    let link_news = Arc::new(Notify::new());
    let links = LinkThread::start(Arc::clone(&link_news));
    let _links = links.map_err(|error| SwitchError::System("the thread of links", error))?;
    let state = State::new(
        parts.identity,
        parts.pipeline,
        parts.workers,
        parts.settings.clone(),
        parts.clock,
    );
    let state: Shared = Rc::new(RefCell::new(state));
    state.borrow_mut().tls = parts.tls.map(Rc::new);
    let tasks = LocalSet::new();
    let ended = tasks.block_on(&runtime, async {
        let signals = match parts.handles_signals {
            true => Some(Signals::new()?),
            false => None,
        };
        let added = state.borrow_mut().add_ports(parts.ports);
        added.map_err(SwitchError::AddPort)?;
        spawn_local(tasks::take_reports(Rc::clone(&state), parts.news));
        spawn_local(tasks::install_plans(Rc::clone(&state), plans));
        spawn_local(tasks::read_links(Rc::clone(&state), link_news));
        let control = Rc::new(Control {
            state: Rc::clone(&state),
            stop: parts.stop.clone(),
            file: parts.file,
        });
        let ready = listen_and_connect(&control, &parts.settings).await?;
        on_ready(&ready);
        tokio::select! {
            worker = tasks::tick(Rc::clone(&state)) => Err(SwitchError::WorkerEnded(worker)),
            () = parts.stop.stopped() => Ok(()),
            () = handle_signals(&control, signals) => Ok(()),
        }
    });
    drop(tasks);
    state.borrow_mut().stop();
    ended
}

/// Opens the control socket and all listeners, and begins to connect to all controllers.
async fn listen_and_connect(
    control: &Rc<Control>,
    settings: &SwitchSettings,
) -> Result<Ready, SwitchError> {
    let folder = &settings.run_dir;
    let path = socket_path(folder, &settings.name);
    let opened = listen::listen_on(&path).await;
    let address = Address::Unix(path);
    let (listener, file) = opened
        .map_err(|error| SwitchError::Listen(ListenError::new(&address, error).to_string()))?;
    spawn_local(control::run(Rc::clone(control), listener, file));
    let management = Address::Unix(folder.join(format!("{}.mgmt", settings.name)));
    let opened = Listener::open(&management).await;
    let listener = opened.map_err(|error| SwitchError::Listen(error.to_string()))?;
    spawn_local(listener.run(Rc::clone(&control.state)));
    control.state.borrow_mut().management = Some(management.clone());
    for address in &settings.listeners {
        let opened = listen::listen(&control.state, address).await;
        opened.map_err(|error| SwitchError::Listen(error.to_string()))?;
    }
    for controller in &settings.controllers {
        listen::connect(&control.state, controller);
    }
    let state = control.state.borrow();
    Ok(Ready {
        name: settings.name.clone(),
        datapath_id: state.datapath_id(),
        ports: state.ports.len(),
        listeners: std::iter::once(&management)
            .chain(settings.listeners.iter().filter(|&it| *it != management))
            .cloned()
            .collect(),
    })
}

/// The signals that a switch handles. While this exists, they do not end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Signals, SwitchError> {
        let open = |kind| {
            let opened = signal(kind);
            opened.map_err(|error| SwitchError::System("signals cannot be handled", error))
        };
        Ok(Signals {
            terminate: open(SignalKind::terminate())?,
            interrupt: open(SignalKind::interrupt())?,
            hang_up: open(SignalKind::hangup())?,
        })
    }
}

/// Handles signals: SIGHUP reloads the configuration, and SIGTERM and SIGINT end this function.
async fn handle_signals(control: &Control, signals: Option<Signals>) {
    let Some(mut signals) = signals else {
        return pending().await;
    };
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return,
            _ = signals.interrupt.recv() => return,
            _ = signals.hang_up.recv() => {
                if let Err(reason) = control.reload().await {
                    tracing::error!("reload: {reason}");
                }
            }
        }
    }
}
