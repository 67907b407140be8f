//! What a link of a scenario may have beyond a rate, a delay, a queue and random losses: how the
//! scenario writes it, what is valid, and what the network makes of it.

use crate::check::{ensure, ensure_time};
use crate::scenario::{LinkSpec, Place, ScenarioError};
use dumbbell_net::{AqmConfig, CodelConfig, FqCodelConfig, PieConfig, RedConfig, RedUnit};
use dumbbell_net::{GilbertElliott, Reordering, Varying};
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// The most steps of a time line and opportunities of a trace.
const MAX_STEPS: usize = 10_000_000;
/// A controller that acts more often than this would only slow the run down.
const MIN_UPDATE_NS: u64 = 100_000;
const MAX_QUEUES: u32 = 65_536;

/// Losses in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstsSpec {
    /// That a good channel becomes bad, for each packet.
    pub p: f64,
    /// That a bad channel becomes good, for each packet.
    pub r: f64,
    /// That a packet is lost while the channel is bad.
    pub bad: f64,
    /// That a packet is lost while the channel is good.
    pub good: f64,
}

/// Packets that others overtake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// The probability that a packet is held back.
    pub share: f64,
    /// For how long.
    pub delay_ns: u64,
}

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AqmSpec {
    /// Floyd and Jacobson, 1993.
    Red(RedSpec),
    /// RFC 8289.
    Codel(CodelSpec),
    /// RFC 8290.
    FqCodel(FqCodelSpec),
    /// RFC 8033.
    Pie(PieSpec),
}

/// Parameters of RED; see [`RedConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "they are those of `RedConfig`")]
pub struct RedSpec {
    pub unit: RedUnitSpec,
    pub min: f64,
    pub max: f64,
    pub probability: f64,
    pub weight: f64,
    pub gentle: bool,
    pub ecn: bool,
    pub hard_drop: bool,
}

/// What RED counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedUnitSpec {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// Parameters of CoDel; see [`CodelConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "they are those of `CodelConfig`")]
pub struct CodelSpec {
    pub target_ns: u64,
    pub interval_ns: u64,
    pub ecn: bool,
}

/// Parameters of FQ-CoDel; see [`FqCodelConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "they are those of `FqCodelConfig`")]
pub struct FqCodelSpec {
    pub target_ns: u64,
    pub interval_ns: u64,
    pub quantum: u32,
    pub queues: u32,
    pub ecn: bool,
}

/// Parameters of PIE; see [`PieConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "they are those of `PieConfig`")]
pub struct PieSpec {
    pub target_ns: u64,
    pub update_ns: u64,
    pub burst_ns: u64,
    pub alpha: f64,
    pub beta: f64,
    pub ecn: bool,
    pub ecn_limit: f64,
}

impl AqmSpec {
    /// What the network makes of it.
    pub(crate) fn config(self) -> AqmConfig {
        let ns = Span::from_nanos;
        match self {
            AqmSpec::Red(red) => AqmConfig::Red(RedConfig {
                unit: match red.unit {
                    RedUnitSpec::Packets => RedUnit::Packets,
                    RedUnitSpec::Bytes => RedUnit::Bytes,
                },
                min: red.min,
                max: red.max,
                probability: red.probability,
                weight: red.weight,
                gentle: red.gentle,
                ecn: red.ecn,
                hard_drop: red.hard_drop,
            }),
            AqmSpec::Codel(CodelSpec { target_ns, interval_ns, ecn }) => {
                let (target, interval) = (ns(target_ns), ns(interval_ns));
                AqmConfig::Codel(CodelConfig { target, interval, ecn })
            }
            AqmSpec::FqCodel(FqCodelSpec { target_ns, interval_ns, quantum, queues, ecn }) => {
                let (target, interval) = (ns(target_ns), ns(interval_ns));
                let codel = CodelConfig { target, interval, ecn };
                AqmConfig::FqCodel(FqCodelConfig { codel, quantum, queues })
            }
            AqmSpec::Pie(pie) => AqmConfig::Pie(PieConfig {
                target: ns(pie.target_ns),
                update: ns(pie.update_ns),
                burst: ns(pie.burst_ns),
                alpha: pie.alpha,
                beta: pie.beta,
                ecn: pie.ecn,
                ecn_limit: pie.ecn_limit,
            }),
        }
    }

    fn check(&self, here: impl Fn() -> Place + Copy) -> Result<(), ScenarioError> {
        let share = "a number from 0 to 1";
        let is_share = |share| (0.0..=1.0).contains(&share);
        match *self {
            AqmSpec::Red(RedSpec { min, max, probability, weight, .. }) => {
                let valid = "0 or more, and at most as much as aqm.red.max";
                ensure(min >= 0.0 && min <= max, here, "aqm.red.min", min, valid)?;
                let valid = "a finite number above 0";
                ensure(max > 0.0 && max.is_finite(), here, "aqm.red.max", max, valid)?;
                ensure(is_share(probability), here, "aqm.red.probability", probability, share)?;
                let valid = "a number above 0 and not above 1";
                let ok = weight > 0.0 && weight <= 1.0;
                ensure(ok, here, "aqm.red.weight", weight, valid)
            }
            AqmSpec::Codel(CodelSpec { target_ns, interval_ns, .. }) => {
                ensure_time(target_ns, 1, here, "aqm.codel.target_ns")?;
                ensure_time(interval_ns, 1, here, "aqm.codel.interval_ns")
            }
            AqmSpec::FqCodel(FqCodelSpec { target_ns, interval_ns, quantum, queues, .. }) => {
                ensure_time(target_ns, 1, here, "aqm.fq_codel.target_ns")?;
                ensure_time(interval_ns, 1, here, "aqm.fq_codel.interval_ns")?;
                ensure(quantum > 0, here, "aqm.fq_codel.quantum", quantum, "bytes above 0")?;
                let valid = format_args!("from 1 to {MAX_QUEUES} queues");
                let ok = (1..=MAX_QUEUES).contains(&queues);
                ensure(ok, here, "aqm.fq_codel.queues", queues, valid)
            }
            AqmSpec::Pie(PieSpec {
                target_ns,
                update_ns,
                burst_ns,
                alpha,
                beta,
                ecn_limit,
                ..
            }) => {
                ensure_time(target_ns, 1, here, "aqm.pie.target_ns")?;
                ensure_time(update_ns, MIN_UPDATE_NS, here, "aqm.pie.update_ns")?;
                ensure_time(burst_ns, 0, here, "aqm.pie.burst_ns")?;
                let valid = "a finite number, 0 or more";
                for (key, weight) in [("aqm.pie.alpha", alpha), ("aqm.pie.beta", beta)] {
                    ensure(weight >= 0.0 && weight.is_finite(), here, key, weight, valid)?;
                }
                ensure(is_share(ecn_limit), here, "aqm.pie.ecn_limit", ecn_limit, share)
            }
        }
    }
}

impl LinkSpec {
    /// How the rate varies, if it does.
    pub(crate) fn varying(&self) -> Option<Varying> {
        let step = |&(at, bps): &(u64, f64)| (Time::from_nanos(at), (bps + 0.5) as u64);
        let opportunity = |&ms: &u32| Time::ZERO + Span::from_millis(u64::from(ms));
        let rates = self.rates.as_ref().map(|rates| rates.iter().map(step).collect());
        let trace = self.trace_ms.as_ref().map(|trace| trace.iter().map(opportunity).collect());
        rates.map(Varying::Timeline).or(trace.map(Varying::Trace))
    }

    pub(crate) fn bursts(&self) -> Option<GilbertElliott> {
        self.gilbert_elliott.map(|BurstsSpec { p, r, bad, good }| GilbertElliott {
            p,
            r,
            bad,
            good,
        })
    }

    pub(crate) fn reordering(&self) -> Reordering {
        self.reorder.map_or(Reordering::default(), |ReorderSpec { share, delay_ns }| Reordering {
            share,
            delay: Span::from_nanos(delay_ns),
        })
    }

    /// Whether all that only some links have is valid.
    pub(crate) fn check_extras(&self) -> Result<(), ScenarioError> {
        let here = || Place::Link(self.name.clone());
        self.check_varying()?;
        let has_rate = self.rate_bps.is_some() || self.rates.is_some() || self.trace_ms.is_some();
        if let Some(aqm) = &self.aqm {
            let valid = "a queue, which needs a rate; or null";
            ensure(has_rate, here, "aqm", "given without a rate", valid)?;
            aqm.check(here)?;
        }
        if let Some(BurstsSpec { p, r, bad, good }) = self.gilbert_elliott {
            for value in [p, r, bad, good] {
                let valid = "probabilities from 0 to 1";
                ensure((0.0..=1.0).contains(&value), here, "gilbert_elliott", value, valid)?;
            }
            let valid = "0 on a link with gilbert_elliott";
            ensure(self.loss == 0.0, here, "loss", self.loss, valid)?;
        }
        ensure_time(self.jitter_ns, 0, here, "jitter_ns")?;
        if let Some(ReorderSpec { share, delay_ns }) = self.reorder {
            let valid = "a probability from 0 to 1";
            ensure((0.0..=1.0).contains(&share), here, "reorder.share", share, valid)?;
            ensure_time(delay_ns, 0, here, "reorder.delay_ns")?;
        }
        Ok(())
    }

    fn check_varying(&self) -> Result<(), ScenarioError> {
        let here = || Place::Link(self.name.clone());
        let given = [self.rate_bps.is_some(), self.rates.is_some(), self.trace_ms.is_some()];
        let count = given.iter().filter(|&&given| given).count();
        let valid = "only one of rate_bps, rates and trace_ms";
        ensure(count <= 1, here, "rate", format_args!("given {count} times"), valid)?;
        if let Some(rates) = &self.rates {
            let valid =
                "pairs of time and rate: the first time 0 ns, each later than the one before";
            let ok = rates.first().is_some_and(|first| first.0 == 0)
                && rates.is_sorted_by(|a, b| a.0 < b.0)
                && rates.len() <= MAX_STEPS;
            ensure(ok, here, "rates", format_args!("these {} pairs", rates.len()), valid)?;
            for &(_, bps) in rates {
                let valid = "numbers of bit/s from 0 to 1e15";
                ensure((0.0..=1e15).contains(&bps), here, "rates", bps, valid)?;
            }
        }
        if let Some(trace) = &self.trace_ms {
            let valid = "times in ms that never decrease, the last one above 0";
            let ok = trace.is_sorted()
                && trace.last().is_some_and(|&last| last > 0)
                && trace.len() <= MAX_STEPS;
            ensure(ok, here, "trace_ms", format_args!("these {} times", trace.len()), valid)?;
        }
        Ok(())
    }
}
