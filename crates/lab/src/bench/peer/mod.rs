//! Peers: external classifiers, measured interleaved with our engines.
//!
//! A peer is a separate program that runs for the whole measurement. It reads rules
//! and headers from a file ([`subject`]) and executes commands ([`process`]). A whole
//! switch reads flow entries and a capture instead ([`switch`]).
//! `bench/peers` has the programs and documents the protocols.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use classyard::{Policy, PolicyTrace, Winner};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::measure::as_rate;
use process::{Process, write_file};

mod process;
mod spec;
mod subject;
mod switch;

pub(crate) use spec::PeerSpec;
pub(crate) use switch::{LoadedSwitch, SwitchPeer, SwitchRate};

/// The version of the protocol between this program and peers.
const PROTOCOL_VERSION: u32 = 1;

/// The name of the file with rules and headers.
const SUBJECT: &str = "subject";

/// A peer's description of itself.
#[derive(Deserialize)]
struct Hello {
    version: String,
    protocol: u32,
    algorithms: Vec<String>,
}

/// The CPU time of an operation.
#[derive(Deserialize)]
struct Times {
    cpu_seconds: f64,
}

/// The reply to commands with no other result.
#[derive(Deserialize)]
struct Done {
    headers: usize,
}

/// The memory of a built peer; unknown values are absent.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Sizes {
    pub(crate) bytes: Option<usize>,
    pub(crate) index_bytes: Option<usize>,
    pub(crate) tables: Option<usize>,
    peak_rss_bytes: Option<usize>,
    huge_page_bytes: Option<usize>,
}

/// The peer of a result row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Origin {
    /// The name without algorithm and options.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) algorithm: String,
    /// The options that it was started with, as `key=value`.
    pub(crate) options: Vec<String>,
    /// True if no other row of this peer classified batches of this set faster.
    pub(crate) best: bool,
    /// The peak memory of its program, including building and headers.
    pub(crate) peak_rss_bytes: Option<usize>,
    /// Memory in huge pages after building.
    pub(crate) huge_page_bytes: Option<usize>,
}

/// A peer with its rules built, ready for passes.
pub(crate) struct Peer {
    spec: PeerSpec,
    hello: Hello,
    process: Rc<RefCell<Process>>,
    /// The winners by the peer's rule numbers.
    ranked: Rc<[Winner]>,
    pub(crate) build_seconds: f64,
    pub(crate) sizes: Sizes,
}

impl Peer {
    /// Starts the program and builds. Each reply may take up to `limit`.
    pub(crate) fn build(
        spec: &PeerSpec,
        policy: &Policy,
        trace: &PolicyTrace,
        limit: Duration,
    ) -> Result<Peer, String> {
        let [rules] = policy.parts() else {
            let parts = policy.parts().len();
            return Err(format!(
                "peers take one kind of header, these rules have {parts}"
            ));
        };
        subject::check(rules)?;
        let (part, headers) = trace.parts().next().expect("the policy has a part");
        debug_assert_eq!(part.index(), 0);
        let arguments = |folder: &Path| -> io::Result<Vec<OsString>> {
            let path = folder.join(SUBJECT);
            write_file(&path, |file| subject::write(rules, headers, file))?;
            Ok(vec![path.into_os_string()])
        };
        let mut process = Process::start(spec, arguments, limit)?;
        let hello: Hello = process.reply("starting")?;
        process.forget(SUBJECT);
        if hello.protocol != PROTOCOL_VERSION {
            return Err(format!(
                "it uses protocol {}, not {PROTOCOL_VERSION}",
                hello.protocol
            ));
        }
        let built: Times = process.ask("build")?;
        let sizes = process.ask("stats")?;
        let ranked = rules.by_rank().into_iter();
        let ranked = ranked.map(|position| rules.rule(position as usize).winner());
        Ok(Peer {
            spec: spec.clone(),
            hello,
            process: Rc::new(RefCell::new(process)),
            ranked: ranked.collect(),
            build_seconds: built.cpu_seconds,
            sizes,
        })
    }

    /// Returns the number of algorithms.
    pub(crate) fn algorithm_count(&self) -> usize {
        self.hello.algorithms.len()
    }

    /// Returns a candidate for each algorithm, with its name and origin.
    pub(crate) fn algorithms(&self) -> Vec<(Algorithm, Origin)> {
        let candidate = |name: &String| {
            let algorithm = Algorithm {
                process: Rc::clone(&self.process),
                ranked: Rc::clone(&self.ranked),
                name: name.clone(),
            };
            let origin = Origin {
                name: self.spec.name().to_owned(),
                version: self.hello.version.clone(),
                algorithm: name.clone(),
                options: self.spec.options().to_vec(),
                best: false,
                peak_rss_bytes: self.sizes.peak_rss_bytes,
                huge_page_bytes: self.sizes.huge_page_bytes,
            };
            (algorithm, origin)
        };
        self.hello.algorithms.iter().map(candidate).collect()
    }
}

/// One of a peer's lookup algorithms on its built rules.
pub(crate) struct Algorithm {
    process: Rc<RefCell<Process>>,
    ranked: Rc<[Winner]>,
    name: String,
}

impl Algorithm {
    fn pass(&self, burst: usize) -> Result<f64, String> {
        #[derive(Deserialize)]
        struct Pass {
            headers: usize,
            cpu_seconds: f64,
        }
        let command = format!("pass {} {burst}", self.name);
        let pass: Pass = self.process.borrow_mut().ask(&command)?;
        Ok(as_rate(pass.headers, pass.cpu_seconds.max(1e-9)))
    }
}

impl Candidate for Algorithm {
    fn batch_rate(&mut self) -> Result<f64, String> {
        self.pass(classyard::classifier::BATCH)
    }

    fn single_rate(&mut self) -> Result<f64, String> {
        self.pass(1)
    }

    fn winners(&mut self) -> Result<Vec<Winner>, String> {
        let mut process = self.process.borrow_mut();
        let path = process.file("winners");
        let command = format!("winners {} {}", self.name, path.display());
        let done: Done = process.ask(&command)?;
        let bytes = std::fs::read(&path).map_err(|error| format!("its winners: {error}"))?;
        let winners = subject::read_winners(&bytes, &self.ranked)?;
        if winners.len() != done.headers {
            return Err(format!(
                "{} winners for {} headers",
                winners.len(),
                done.headers
            ));
        }
        Ok(winners)
    }
}
