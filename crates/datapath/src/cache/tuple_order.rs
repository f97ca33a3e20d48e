//! The order of tuples by use, for searches that end at the first match.
//!
//! ```text
//! reference of a tuple with load factor α, which is its entries divided by its buckets:
//!     metric of the tuple += 1/α, clamped to 1/λ … λ                    [FTS25] eq. 3
//!     while its metric is larger than the previous tuple's: swap the two
//! at regular intervals: divide all metrics by the largest
//! ```
//! Frequent tuples come first. If two tuples are equally frequent, the tuple with fewer
//! entries in a bucket comes first, since a search in it takes less time.
//!
//! [FTS25]: classyard::papers#fts25

/// The settings of an order of tuples.
///
/// ```
/// use classyard_datapath::pipeline::TupleSettings;
///
/// assert_eq!(TupleSettings::default().lambda(), 4.0);
/// assert!(TupleSettings::default().with_lambda(1.0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TupleSettings {
    lambda: f64,
    normalise_every: u32,
}

/// The error of a λ that is not a number from [`TupleSettings::MIN_LAMBDA`] to
/// [`TupleSettings::MAX_LAMBDA`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "λ is {found}; expected a number from {min} to {max}",
    min = TupleSettings::MIN_LAMBDA,
    max = TupleSettings::MAX_LAMBDA
)]
pub struct LambdaError {
    found: f64,
}

impl Default for TupleSettings {
    /// Returns the paper's λ = 4, and 65,536 references between two normalisations. The
    /// paper does not say how often metrics are normalised.
    fn default() -> TupleSettings {
        TupleSettings {
            lambda: 4.0,
            normalise_every: 1 << 16,
        }
    }
}

impl TupleSettings {
    /// The smallest λ. The paper requires a number above 1.
    pub const MIN_LAMBDA: f64 = 1.001;
    /// The largest λ.
    pub const MAX_LAMBDA: f64 = 1_000.0;

    /// Sets λ: a reference adds at least 1/λ and at most λ to the metric of its tuple.
    ///
    /// # Errors
    /// [`LambdaError`] if λ is not from [`MIN_LAMBDA`](Self::MIN_LAMBDA) to
    /// [`MAX_LAMBDA`](Self::MAX_LAMBDA).
    pub fn with_lambda(self, lambda: f64) -> Result<TupleSettings, LambdaError> {
        match (TupleSettings::MIN_LAMBDA..=TupleSettings::MAX_LAMBDA).contains(&lambda) {
            true => Ok(TupleSettings { lambda, ..self }),
            false => Err(LambdaError { found: lambda }),
        }
    }

    /// Sets the number of references between two normalisations of the metrics; 0 counts as
    /// 1. After a normalisation the largest metric is 1, so recent references weigh more.
    #[must_use]
    pub fn with_normalise_every(self, references: u32) -> TupleSettings {
        TupleSettings {
            normalise_every: references.max(1),
            ..self
        }
    }

    /// Returns λ.
    #[must_use]
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// Returns the number of references between two normalisations of the metrics.
    #[must_use]
    pub fn normalise_every(&self) -> u32 {
        self.normalise_every
    }
}

/// The order of tuples, which have the numbers 0, 1, 2, …
#[derive(Clone, Debug)]
pub(crate) struct TupleOrder {
    settings: TupleSettings,
    /// The numbers of tuples; their metrics decrease.
    order: Vec<usize>,
    /// The metrics of tuples, by their numbers.
    metrics: Vec<f64>,
    until_normalised: u32,
}

impl TupleOrder {
    /// Returns an order without tuples.
    pub(crate) fn new(settings: TupleSettings) -> TupleOrder {
        TupleOrder {
            settings,
            order: Vec::new(),
            metrics: Vec::new(),
            until_normalised: settings.normalise_every,
        }
    }

    /// Adds a tuple with the next number, as the last one.
    pub(crate) fn push(&mut self) {
        self.order.push(self.metrics.len());
        self.metrics.push(0.0);
    }

    /// Removes the references of a tuple, which becomes the last one.
    pub(crate) fn reset(&mut self, tuple: usize) {
        self.metrics[tuple] = 0.0;
        self.order.retain(|&other| other != tuple);
        self.order.push(tuple);
    }

    /// Returns the numbers of tuples, in order.
    pub(crate) fn tuples(&self) -> &[usize] {
        &self.order
    }

    /// Returns the metric of a tuple.
    pub(crate) fn metric(&self, tuple: usize) -> f64 {
        self.metrics[tuple]
    }

    /// Returns the bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<usize>() + self.metrics.capacity() * size_of::<f64>()
    }

    /// Records a reference of the tuple at a place in the order. Its metric grows by eq. 3,
    /// and the tuple moves ahead of tuples with smaller metrics. Returns its new place. The
    /// tuples behind `place` stay where they are.
    pub(crate) fn reference(&mut self, place: usize, load_factor: f64) -> usize {
        let tuple = self.order[place];
        let lambda = self.settings.lambda;
        // 1/α is infinite if the tuple has no entries.
        self.metrics[tuple] += (1.0 / load_factor).clamp(1.0 / lambda, lambda);
        let mut position = place;
        while position > 0 && self.metrics[tuple] > self.metrics[self.order[position - 1]] {
            self.order.swap(position, position - 1);
            position -= 1;
        }
        self.until_normalised -= 1;
        if self.until_normalised == 0 {
            self.until_normalised = self.settings.normalise_every;
            self.normalise();
        }
        position
    }

    /// Divides all metrics by the largest, which is the first.
    fn normalise(&mut self) {
        let greatest = self.order.first().map_or(0.0, |&first| self.metrics[first]);
        if greatest > 0.0 {
            for metric in &mut self.metrics {
                *metric /= greatest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(settings: TupleSettings, tuples: usize) -> TupleOrder {
        let mut order = TupleOrder::new(settings);
        (0..tuples).for_each(|_| order.push());
        order
    }

    /// The metric grows by 1/α, clamped to 1/λ … λ.
    #[test]
    fn metrics_are_those_of_equation_3() {
        let loads = [
            (0.0, 4.0),
            (0.125, 4.0),
            (0.5, 2.0),
            (2.0, 0.5),
            (8.0, 0.25),
        ];
        for (load_factor, growth) in loads {
            let mut order = order(TupleSettings::default(), 1);
            assert_eq!(order.reference(0, load_factor), 0);
            assert!((order.metric(0) - growth).abs() < 1e-9, "{load_factor}");
        }
        let twelve = TupleSettings::default().with_lambda(12.0).unwrap();
        let mut order = order(twelve, 1);
        order.reference(0, 0.0);
        assert!((order.metric(0) - 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_reference_moves_its_tuple_ahead_of_smaller_metrics() {
        let mut order = order(TupleSettings::default(), 3);
        assert_eq!(order.reference(2, 1.0), 0);
        assert_eq!(order.tuples(), [2, 0, 1]);
        // A tuple with an equal metric stays ahead.
        assert_eq!(order.reference(1, 1.0), 1);
        assert_eq!(order.tuples(), [2, 0, 1]);
        assert_eq!(order.reference(1, 1.0), 0);
        assert_eq!(order.tuples(), [0, 2, 1]);
        order.reset(0);
        assert_eq!(order.tuples(), [2, 1, 0]);
        assert!(order.metric(0).abs() < 1e-9);
    }

    #[test]
    fn normalisation_bounds_metrics_and_keeps_the_order() {
        let settings = TupleSettings::default().with_normalise_every(10);
        let mut order = order(settings, 2);
        for step in 0..1_000 {
            let tuple = usize::from(step % 3 == 0);
            let place = order.tuples().iter().position(|&other| other == tuple);
            order.reference(place.unwrap(), 1.0);
            assert!(order.metric(order.tuples()[0]) <= 11.0);
            assert!(order.metric(order.tuples()[0]) >= order.metric(order.tuples()[1]));
        }
        assert_eq!(order.tuples(), [0, 1]);
    }

    #[test]
    fn bad_lambdas_are_errors() {
        for lambda in [1.0, 0.0, -4.0, 1e9, f64::NAN, f64::INFINITY] {
            let error = TupleSettings::default().with_lambda(lambda).unwrap_err();
            assert!(error.to_string().contains("from 1.001 to 1000"), "{error}");
        }
    }
}
