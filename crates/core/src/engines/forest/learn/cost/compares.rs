//! The compares: the runs with which headers of a table are compared.
//!
//! If a header's winner is in the table, the header finds the winner's bucket.
//! Another header finds a bucket if it shares it with sampled rules. If only a part
//! of the table is sampled, a found bucket also represents buckets without sampled
//! rules: it counts as the weight of its sampled rules divided by the mean bucket. A
//! header without a bucket may pass the signature by chance; it is then compared
//! with the run of another key.

use super::buckets::Buckets;
use super::counters::Counters;
use super::headers::Header;
use super::prices::Prices;

/// The runs of a table with which headers are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compares {
    /// The number of compared runs, over all headers.
    pub(super) count: f64,
    /// The nanoseconds that these headers spend on the table, including its probes.
    pub(super) time: f64,
}

impl Compares {
    /// Estimates the compares of headers that probe a table. The counters hold the
    /// table's sampled rules. `is_home` receives the kind of a header's winner; it
    /// is true if the winner is in the table. `probes` is the time of the probes
    /// alone.
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
        // Headers with winners in other tables: how many find a bucket, and how many
        // there are.
        let (mut meeting, mut meeting_time, mut strangers) = (0.0, 0.0, 0u32);
        for header in headers {
            let weight = f64::from(counters.weight(&header.key, mask));
            if is_home(header.kind) {
                count += 1.0;
                let other_rules = (weight - f64::from(header.weight)).max(0.0);
                time += prices.run(1.0 + other_rules + buckets.others);
                continue;
            }
            strangers += 1;
            if weight > 0.0 {
                // In a sampled table, a bucket is found as often as its rules are
                // drawn; the fewer are drawn, the more rules each represents.
                let (times, rules) = if buckets.thinned {
                    let times = (weight / buckets.of_rule).max(1.0);
                    (times, weight.min(buckets.of_rule))
                } else {
                    (1.0, weight)
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
