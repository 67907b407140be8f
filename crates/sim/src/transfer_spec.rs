//! Flows that consist of many transfers: when transfers arrive, and how large they are.
//!
//! A transfer is a connection of its own. Its start and its size are drawn before the run, from the
//! seed of the run and the place of its flow, so they do not depend on what the network does.

use crate::draws::Draws;
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// The transfers of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferSpec {
    /// When they arrive.
    pub arrivals: ArrivalProcess,
    /// How large they are.
    pub sizes: Sizes,
}

/// When transfers arrive, from the start of the flow on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalProcess {
    /// A Poisson process with this mean of the time from one to the next, ns.
    Poisson(u64),
    /// One every so many ns, the first at the start.
    Periodic(u64),
    /// At these times after the start, ns, in order.
    Times(Vec<u64>),
}

/// How many bytes transfers have: at least one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// All the same.
    Constant(u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Lognormal with this mean, and this standard deviation of the logarithm.
    Lognormal(u64, f64),
    /// Pareto with this mean and this shape, above 1.
    Pareto(u64, f64),
    /// Points (bytes, share of transfers that are no larger), linear between them; the last share
    /// is 1.
    Points(Vec<(u64, f64)>),
}

/// The maximum of sizes and their means.
const MAX_BYTES: u64 = 1_000_000_000_000_000;

impl TransferSpec {
    /// The transfers that arrive from `start` on and before `end`: start and bytes of each, in order.
    /// The two seeds draw arrivals and sizes.
    pub(crate) fn draw(&self, start: Time, end: Time, seeds: [u64; 2]) -> Vec<(Time, u64)> {
        let mut draws = Draws::new(seeds[1]);
        let starts = self.arrivals.starts(start, end, seeds[0]);
        starts.into_iter().map(|at| (at, self.sizes.draw(&mut draws))).collect()
    }
}

impl TransferSpec {
    /// Whether all numbers are valid, and which ones are.
    pub(crate) fn is_valid(&self) -> (bool, &'static str) {
        let in_order = |times: &[u64]| times.windows(2).all(|pair| pair[0] <= pair[1]);
        let ok = match &self.arrivals {
            ArrivalProcess::Poisson(every) | ArrivalProcess::Periodic(every) => *every > 0,
            ArrivalProcess::Times(times) => !times.is_empty() && in_order(times),
        };
        let (are_sizes, _) = self.sizes.is_valid();
        let valid = "times in order and intervals above 0 ns; sizes from 1 to 10^15 bytes, sigma to \
                     10, a shape above 1, points that rise to a share of 1";
        (ok && are_sizes, valid)
    }
}

impl Sizes {
    /// Whether all numbers are valid, and which ones are.
    pub(crate) fn is_valid(&self) -> (bool, &'static str) {
        let is_size = |bytes: u64| (1..=MAX_BYTES).contains(&bytes);
        let rises = |pair: &[(u64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
        let are_sizes = match self {
            Sizes::Constant(mean) | Sizes::Exponential(mean) => is_size(*mean),
            Sizes::Lognormal(mean, sigma) => is_size(*mean) && (0.0..=10.0).contains(sigma),
            Sizes::Pareto(mean, shape) => is_size(*mean) && *shape > 1.0 && *shape <= 1000.0,
            Sizes::Points(points) => {
                let is_whole = points.last().is_some_and(|last| last.1 == 1.0 && is_size(last.0));
                is_whole && points[0].1 >= 0.0 && points.windows(2).all(rises)
            }
        };
        let valid = "sizes from 1 to 10^15 bytes, sigma to 10, a shape above 1, points that rise to a \
                     share of 1";
        (are_sizes, valid)
    }
}

impl ArrivalProcess {
    fn starts(&self, start: Time, end: Time, seed: u64) -> Vec<Time> {
        let until_end = |first: Time, gap: &mut dyn FnMut() -> Span| -> Vec<Time> {
            let starts = std::iter::successors(Some(first), |&at| Some(at + gap()));
            starts.take_while(|&at| at < end).collect()
        };
        match self {
            ArrivalProcess::Poisson(mean) => {
                let mut draws = Draws::new(seed);
                // At least 1 ns, or the time would stand still.
                let mut gap =
                    || Span::from_nanos(((draws.exponential() * *mean as f64) as u64).max(1));
                let first = start + gap();
                until_end(first, &mut gap)
            }
            ArrivalProcess::Periodic(every) => until_end(start, &mut || Span::from_nanos(*every)),
            ArrivalProcess::Times(times) => {
                let starts = times.iter().map(|&after| start + Span::from_nanos(after));
                starts.take_while(|&at| at < end).collect()
            }
        }
    }

    /// How many arrive in a time, on average.
    pub fn expected(&self, time: Span) -> f64 {
        match self {
            ArrivalProcess::Poisson(every) | ArrivalProcess::Periodic(every) => {
                time.as_nanos() as f64 / *every as f64
            }
            ArrivalProcess::Times(times) => times.len() as f64,
        }
    }
}

impl Sizes {
    /// The mean, bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Constant(mean)
            | Sizes::Exponential(mean)
            | Sizes::Lognormal(mean, _)
            | Sizes::Pareto(mean, _) => *mean as f64,
            Sizes::Points(points) => {
                let mut last = (0, 0.0);
                let mut sum = 0.0;
                for &(bytes, share) in points {
                    sum += (share - last.1) * (last.0 + bytes) as f64 / 2.0;
                    last = (bytes, share);
                }
                sum
            }
        }
    }

    pub(crate) fn draw(&self, draws: &mut Draws) -> u64 {
        let bytes = match self {
            Sizes::Constant(bytes) => return *bytes,
            Sizes::Exponential(mean) => *mean as f64 * draws.exponential(),
            Sizes::Lognormal(mean, sigma) => {
                let median = *mean as f64 * libm::exp(-sigma * sigma / 2.0);
                median * libm::exp(sigma * draws.normal())
            }
            Sizes::Pareto(mean, shape) => {
                let least = *mean as f64 * (shape - 1.0) / shape;
                least * libm::pow(draws.uniform(), -1.0 / shape)
            }
            Sizes::Points(points) => inverse(points, draws.uniform()),
        };
        (bytes as u64).max(1)
    }
}

/// The bytes of which a share `below` is no larger, linear between the points.
fn inverse(points: &[(u64, f64)], below: f64) -> f64 {
    let at = points.partition_point(|point| point.1 < below).min(points.len() - 1);
    let (bytes, share) = points[at];
    let (from, least) = if at == 0 { (0, 0.0) } else { points[at - 1] };
    let part = if share > least { (below - least) / (share - least) } else { 1.0 };
    from as f64 + part * (bytes - from) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Time = Time::from_nanos(1_000_000_000_000);

    fn sizes(sizes: Sizes, count: usize) -> Vec<f64> {
        let mut draws = Draws::new(1);
        (0..count).map(|_| sizes.draw(&mut draws) as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn share_below(values: &[f64], bound: f64) -> f64 {
        values.iter().filter(|&&value| value <= bound).count() as f64 / values.len() as f64
    }

    #[test]
    fn poisson_arrivals_are_memoryless_with_the_mean_given() {
        // 100,000 gaps of 10 ms; four standard deviations of the count are 1265.
        let starts = ArrivalProcess::Poisson(10_000_000).starts(Time::ZERO, END, 7);
        assert!(starts.len().abs_diff(100_000) < 1265, "{}", starts.len());
        let gaps: Vec<_> =
            starts.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        let mean = mean(&gaps);
        // The exponential's quantiles: 1 - exp(-x / mean).
        for x in [0.1, 0.5, 1.0, 2.0] {
            let expected = 1.0 - f64::exp(-x);
            assert!((share_below(&gaps, x * mean) - expected).abs() < 0.006, "{x}");
        }
    }

    #[test]
    fn periodic_arrivals_begin_at_the_start_and_end_before_the_end() {
        let start = Time::from_nanos(5);
        let starts = ArrivalProcess::Periodic(10).starts(start, Time::from_nanos(35), 0);
        assert_eq!(starts, [5, 15, 25].map(Time::from_nanos));
        let times = ArrivalProcess::Times(vec![0, 3, 30]).starts(start, Time::from_nanos(35), 0);
        assert_eq!(times, [5, 8].map(Time::from_nanos));
    }

    #[test]
    fn sizes_have_the_mean_and_the_distribution_given() {
        let exponential = sizes(Sizes::Exponential(100_000), 200_000);
        assert!((mean(&exponential) / 1e5 - 1.0).abs() < 0.01);
        assert!((share_below(&exponential, 1e5) - 0.632).abs() < 0.005);
        let lognormal = sizes(Sizes::Lognormal(100_000, 1.0), 200_000);
        assert!((mean(&lognormal) / 1e5 - 1.0).abs() < 0.02);
        // The median is mean exp(-1/2).
        assert!((share_below(&lognormal, 60_653.0) - 0.5).abs() < 0.005);
        let pareto = sizes(Sizes::Pareto(100_000, 2.5), 200_000);
        assert!((mean(&pareto) / 1e5 - 1.0).abs() < 0.02);
        // The least is 60,000; P(X <= 2 least) = 1 - 2^-2.5.
        assert!((share_below(&pareto, 120_000.0) - 0.8232).abs() < 0.005);
    }

    #[test]
    fn points_are_met_and_linear_between() {
        let points = Sizes::Points(vec![(1000, 0.5), (10_000, 1.0)]);
        assert_eq!(points.mean(), 0.5 * 500.0 + 0.5 * 5500.0);
        let drawn = sizes(points.clone(), 100_000);
        assert!((mean(&drawn) / points.mean() - 1.0).abs() < 0.01);
        for (bound, share) in [(500.0, 0.25), (1000.0, 0.5), (5500.0, 0.75), (10_000.0, 1.0)] {
            assert!((share_below(&drawn, bound) - share).abs() < 0.006, "{bound}");
        }
    }
}
