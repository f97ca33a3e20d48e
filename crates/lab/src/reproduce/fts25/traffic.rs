//! The traffic of the figures: generated in place of the paper's traces, or the user's
//! captures.

use std::sync::Arc;

use classyard_report::failure::Failure;

use super::stream::{self, Outcome};
use super::{TRACES, TRAFFIC, Trace};
use crate::reproduce::study::Study;

/// Traffic, and everything that was measured with it.
pub(super) struct Traffic {
    /// A name for each trace.
    pub(super) names: Vec<String>,
    /// The outcome of each trace.
    pub(super) outcomes: Vec<Outcome>,
    /// The report's description of the traffic.
    pub(super) description: String,
    is_own: bool,
}

impl Traffic {
    /// Measures generated traffic, or the user's captures if there are any; or returns the
    /// stored outcomes.
    ///
    /// # Errors
    /// If a measurement cannot be stored.
    pub(super) fn measure(study: &mut Study<'_>) -> Result<Traffic, Failure> {
        if study.inputs.packets.is_empty() {
            return Ok(Traffic {
                names: TRACES.iter().map(|trace| trace.name.to_owned()).collect(),
                outcomes: study.fts25_outcomes()?,
                description: TRAFFIC.to_owned(),
                is_own: false,
            });
        }
        let inputs = Arc::clone(&study.inputs);
        study.expect_points(inputs.packets.len());
        let mut outcomes = Vec::new();
        let mut packets = Vec::new();
        for own in &inputs.packets {
            let outcome = study.point(&format!("own packets {}", own.content), |study| {
                let packets = own.packets.iter().copied();
                Ok(stream::measure_packets(packets, study.args.seed))
            })?;
            packets.push(format!(
                "{} has {} IPv4 packets in {:.3} s",
                own.name, outcome.packets, outcome.seconds
            ));
            outcomes.push(outcome);
        }
        let description = format!(
            "The traffic is from captures, with their times: {}. Packets with the same addresses, \
             ports and protocol are a flow; flows share a flow entry if the class networks of \
             their addresses, the highest bits of their ports and their protocol are equal.",
            packets.join(", ")
        );
        Ok(Traffic {
            names: inputs.packets.iter().map(|own| own.name.clone()).collect(),
            outcomes,
            description,
            is_own: true,
        })
    }

    /// Returns the names with the outcomes.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&String, &Outcome)> {
        self.names.iter().zip(&self.outcomes)
    }

    /// Returns the paper's trace that the traffic at `index` replaces.
    pub(super) fn of_paper(&self, index: usize) -> Option<&'static Trace> {
        TRACES.get(index).filter(|_| !self.is_own)
    }

    /// Returns the outcomes that claims are about: none with captures.
    pub(super) fn claimed(&self) -> &[Outcome] {
        match self.is_own {
            true => &[],
            false => &self.outcomes,
        }
    }

    /// Returns the name of a file of the figure.
    pub(super) fn file(&self, name: &str) -> String {
        match self.is_own {
            true => format!("own-{name}"),
            false => name.to_owned(),
        }
    }

    /// Returns the title of a section.
    pub(super) fn title(&self, title: &str) -> String {
        match self.is_own {
            true => format!("{title}, own inputs"),
            false => title.to_owned(),
        }
    }

    /// Returns the end of the name of a trace's file: names of captures are paths.
    pub(super) fn ending(&self, index: usize) -> String {
        match self.of_paper(index) {
            Some(trace) => trace.name.to_lowercase(),
            None => (index + 1).to_string(),
        }
    }
}
