//! The compares: which runs the headers that probe a table are compared with.
//!
//! A header whose winner is in the table finds its bucket. Another header finds a
//! bucket if it meets sampled rules there. In a table of which only a part is
//! sampled it also meets rules that are not seen, so such meetings count as often
//! as the mean bucket is missed. A header that meets nothing passes the signature
//! by chance, and is compared with the run of another key.

use super::buckets::Buckets;
use super::counters::Counters;
use super::headers::Header;
use super::prices::Prices;

/// The runs that headers are compared with in a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compares {
    /// The number of runs, over all headers.
    pub(super) count: f64,
    /// The nanoseconds that these headers spend on the table, its probes
    /// included.
    pub(super) time: f64,
}

impl Compares {
    /// What headers that probe a table find there. The counters hold the table's
    /// sampled rules; `is_home` says whether a header's winner is of the table,
    /// by the winner's kind; `probes` is the time for the probes alone.
    pub(super) fn estimate<const W: usize>(
        headers: &[Header<W>],
        is_home: impl Fn(u32) -> bool,
        counters: &Counters,
        mask: &[u64; W],
        buckets: &Buckets,
        prices: &Prices,
        probes: f64,
    ) -> Compares {
        let mut count = 0.0;
        let mut time = probes;
        // Headers of other tables: those that meet rules here, and all.
        let (mut meeting, mut meeting_time, mut strangers) = (0.0, 0.0, 0u32);
        for header in headers {
            let met = f64::from(counters.weight(&header.key, mask));
            if is_home(header.kind) {
                count += 1.0;
                let others = (met - f64::from(header.weight)).max(0.0);
                time += prices.run(1.0 + others + buckets.others);
                continue;
            }
            strangers += 1;
            if met > 0.0 {
                // In a thinned-out table a bucket is met as often as its rules
                // are drawn: the more seldom, the more rules each stands for.
                let (times, rules) = if buckets.thinned {
                    let times = (met / buckets.of_rule).max(1.0);
                    (times, met.min(buckets.of_rule))
                } else {
                    (1.0, met)
                };
                meeting += times;
                meeting_time += times * prices.run(rules + buckets.others);
            }
        }
        let strangers = f64::from(strangers);
        if meeting > strangers {
            meeting_time *= strangers / meeting;
            meeting = strangers;
        }
        let by_chance = buckets.by_chance * (strangers - meeting);
        count += meeting + by_chance;
        time += meeting_time + by_chance * prices.run(buckets.mean);
        Compares { count, time }
    }
}
