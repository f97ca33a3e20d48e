//! A switch: it is made from settings, and runs until it is stopped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use classyard_datapath::pipeline::{CacheSettings, KINDS, Pipeline};
use classyard_datapath::{TableSettings, text};
use classyard_openflow::agent::SwitchIdentity;
use classyard_ports::{Device, MemoryPeer, Queue};
use tokio::sync::Notify;

use crate::agent::{self, Opened, Parts, Ready};
use crate::clock::Clock;
use crate::config::{DeviceSettings, Poll, PortSettings, SwitchSettings};
use crate::error::SwitchError;
use crate::heap;
use crate::stop::StopHandle;
use crate::worker::WorkerParts;

/// The kind of cache of single flows.
const CACHE_KIND: &str = "adaptive";

/// Single flows that the cache of a worker holds.
const CACHED_FLOWS: usize = 1 << 17;

/// The devices and queues of ports in memory, by name.
type MemoryPorts = BTreeMap<String, (Device, Vec<Box<dyn Queue>>)>;

/// A switch that does not run yet.
pub struct Switch {
    settings: SwitchSettings,
    memory: MemoryPorts,
    stop: StopHandle,
    handles_signals: bool,
    returns_memory: bool,
    file: Option<PathBuf>,
}

impl Switch {
    /// Returns a switch with these settings. Nothing is opened yet.
    #[must_use]
    pub fn new(settings: SwitchSettings) -> Switch {
        Switch {
            settings,
            memory: BTreeMap::new(),
            stop: StopHandle::default(),
            handles_signals: false,
            returns_memory: false,
            file: None,
        }
    }

    /// Adds a port in memory. Returns its other end.
    #[must_use]
    pub fn memory_port(&mut self, number: u32, name: &str) -> MemoryPeer {
        let (device, queues, peer) = classyard_ports::memory(self.settings.workers);
        self.memory.insert(name.to_owned(), (device, queues));
        self.settings.ports.push(PortSettings {
            number,
            name: name.to_owned(),
            device: DeviceSettings::Memory,
        });
        peer
    }

    /// Notes the configuration file, which the switch reads again at a reload.
    #[must_use]
    pub fn configuration(self, file: PathBuf) -> Switch {
        Switch {
            file: Some(file),
            ..self
        }
    }

    /// Lets the switch stop at the signals SIGTERM and SIGINT, and reload at SIGHUP.
    #[must_use]
    pub fn handle_signals(self) -> Switch {
        Switch {
            handles_signals: true,
            ..self
        }
    }

    /// Lets the system take back the memory of long lists when they are freed. This sets an
    /// option of the allocator of the GNU C library, so it is for processes that only run a
    /// switch.
    #[must_use]
    pub fn return_free_memory(self) -> Switch {
        Switch {
            returns_memory: true,
            ..self
        }
    }

    /// Returns what stops the switch.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Runs the switch on this thread and its workers on others, until it is stopped. Calls
    /// `on_ready` when all ports are open and all sockets listen.
    ///
    /// # Errors
    /// [`SwitchError`] if the switch cannot start, or if a worker ended. Then all ports are
    /// closed.
    pub fn run(mut self, on_ready: impl FnOnce(&Ready)) -> Result<(), SwitchError> {
        let clock = Clock::start();
        if self.returns_memory {
            heap::keep_long_blocks_apart();
        }
        let mut pipeline = filled_pipeline(&self.settings, clock)?;
        // A second switch of the same name must not take frames from the ports.
        agent::check_run_dir(&self.settings)?;
        let tls = agent::load_tls(&self.settings).map_err(SwitchError::Tls)?;
        let ports = open_ports(&self.settings, &mut self.memory)?;
        let news = Arc::new(Notify::new());
        let mut workers = Vec::with_capacity(self.settings.workers);
        for number in 0..self.settings.workers {
            let parts = WorkerParts {
                number,
                worker: pipeline.cached_worker(cache_settings()),
                cpu: self.settings.cpus.get(number).copied(),
                is_polling: self.settings.poll == Poll::Always,
                clock,
                agent: Arc::clone(&news),
            };
            let worker = parts.start();
            workers.push(worker.map_err(|error| SwitchError::Worker(number, error))?);
        }
        let parts = Parts {
            identity: identity(&self.settings, &ports),
            settings: self.settings,
            pipeline,
            workers,
            ports,
            tls,
            news,
            clock,
            stop: self.stop,
            handles_signals: self.handles_signals,
            file: self.file,
        };
        agent::run(parts, on_ready)
    }
}

/// Returns the caches of a worker, which measure whether they save time.
fn cache_settings() -> CacheSettings {
    let settings = CacheSettings::new().clock(Some(agent::cache_clock));
    let adaptive = KINDS.iter().find(|kind| kind.name == CACHE_KIND);
    settings
        .microflows(*adaptive.expect("a kind of the list"), CACHED_FLOWS)
        .expect("an allowed number of flows")
}

/// Returns a pipeline with the flows of the configuration.
fn filled_pipeline(settings: &SwitchSettings, clock: Clock) -> Result<Pipeline, SwitchError> {
    let tables = TableSettings::new(settings.engine.clone());
    let tables = tables.map_err(|error| SwitchError::Engine(error.to_string()))?;
    let pipeline = Pipeline::new(tables);
    let Some(path) = &settings.flows else {
        return Ok(pipeline);
    };
    let source = path.display().to_string();
    let flows = std::fs::read_to_string(path)
        .map_err(|error| SwitchError::FlowsFile(source.clone(), error))?;
    let flows = settings.flows_with_ports(&flows);
    let filled = text::fill(pipeline, &source, &flows, false, clock.now());
    let filled = filled.map_err(SwitchError::Flows)?;
    for note in &filled.notes {
        tracing::warn!("{source}: {note}");
    }
    Ok(filled.pipeline)
}

/// Opens the devices of all ports.
fn open_ports(
    settings: &SwitchSettings,
    memory: &mut MemoryPorts,
) -> Result<Vec<Opened>, SwitchError> {
    let mut opened = Vec::with_capacity(settings.ports.len());
    for port in &settings.ports {
        let (device, queues) = match memory.remove(&port.name) {
            Some(device) => device,
            None => agent::open(&port.device, settings.workers)
                .map_err(|error| SwitchError::Port(port.name.clone(), error))?,
        };
        opened.push((port.clone(), device, queues));
    }
    Ok(opened)
}

/// Returns how the switch describes itself to controllers.
fn identity(settings: &SwitchSettings, ports: &[Opened]) -> SwitchIdentity {
    let mut addresses = ports.iter().filter_map(|(_, device, _)| device.link().ok());
    let address = addresses.find_map(|link| (link.address != [0; 6]).then_some(link.address));
    let first_port = address.map(|[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    SwitchIdentity {
        datapath_id: settings.datapath_id.or(first_port).unwrap_or(1),
        manufacturer: "classyard".to_owned(),
        hardware: "Linux".to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        serial_number: String::new(),
        name: settings.name.clone(),
    }
}
