//! AQM, varying rates, loss models, jitter, reordering and reroutes of a scenario's links:
//! validation and conversion.

use crate::check::{ensure, ensure_time};
use crate::scenario::{LinkSpec, QueueSpec, ScenarioError, ScenarioPart};
use dumbbell_net::{
    AqmConfig, CakeConfig, CodelConfig, DualPi2Config, FqCodelConfig, FqPieConfig, GilbertElliott,
};
use dumbbell_net::{LossModel, PieConfig, RateProcess, RedConfig, Reordering};
use dumbbell_units::{Rate, Span, Time};

/// The maximum number of steps of a rate, opportunities of a trace, or reroutes.
const MAX_STEPS: usize = 10_000_000;
/// A shorter update interval would only slow the run down.
const MIN_UPDATE_NS: u64 = 100_000;
const MAX_QUEUES: u32 = 65_536;

fn check_aqm(aqm: &AqmConfig, here: impl Fn() -> ScenarioPart + Copy) -> Result<(), ScenarioError> {
    let share = "a number from 0 to 1";
    let is_share = |share| (0.0..=1.0).contains(&share);
    match *aqm {
        AqmConfig::Red(RedConfig { min, max, probability, weight, .. }) => {
            let valid = "0 or more, and at most as much as aqm.red.max";
            ensure(min >= 0.0 && min <= max, here, "aqm.red.min", min, valid)?;
            let valid = "a finite number above 0";
            ensure(max > 0.0 && max.is_finite(), here, "aqm.red.max", max, valid)?;
            ensure(is_share(probability), here, "aqm.red.probability", probability, share)?;
            let valid = "a number above 0 and not above 1";
            let ok = weight > 0.0 && weight <= 1.0;
            ensure(ok, here, "aqm.red.weight", weight, valid)
        }
        AqmConfig::Codel(codel) => {
            check_codel(&codel, here, ["aqm.codel.target_ns", "aqm.codel.interval_ns"])
        }
        AqmConfig::FqCodel(FqCodelConfig { codel, quantum, queues }) => {
            check_codel(&codel, here, ["aqm.fq_codel.target_ns", "aqm.fq_codel.interval_ns"])?;
            ensure(quantum > 0, here, "aqm.fq_codel.quantum", quantum, "bytes above 0")?;
            let valid = format_args!("from 1 to {MAX_QUEUES} queues");
            let ok = (1..=MAX_QUEUES).contains(&queues);
            ensure(ok, here, "aqm.fq_codel.queues", queues, valid)
        }
        AqmConfig::Cake(CakeConfig { target, interval, queues, .. }) => {
            ensure_time(target.as_nanos(), 1, here, "aqm.cake.target_ns")?;
            ensure_time(interval.as_nanos(), 1, here, "aqm.cake.interval_ns")?;
            let valid = format_args!("from 1 to {MAX_QUEUES} queues");
            let ok = (1..=MAX_QUEUES).contains(&queues);
            ensure(ok, here, "aqm.cake.queues", queues, valid)
        }
        AqmConfig::Pie(pie) => check_pie(&pie, here, PIE_KEYS),
        AqmConfig::FqPie(FqPieConfig { pie, quantum, queues }) => {
            check_pie(&pie, here, FQ_PIE_KEYS)?;
            ensure(quantum > 0, here, "aqm.fq_pie.quantum", quantum, "bytes above 0")?;
            let valid = format_args!("from 1 to {MAX_QUEUES} queues");
            let ok = (1..=MAX_QUEUES).contains(&queues);
            ensure(ok, here, "aqm.fq_pie.queues", queues, valid)
        }
        AqmConfig::DualPi2(dualpi2) => check_dualpi2(&dualpi2, here),
        AqmConfig::Step(_) => Ok(()),
    }
}

/// Checks a list of (time, rate).
pub(crate) fn check_rates(
    rates: &[(u64, f64)],
    here: impl Fn() -> ScenarioPart + Copy,
    key: &'static str,
) -> Result<(), ScenarioError> {
    let valid = "pairs of time and rate: the first time 0 ns, each later than the one before";
    let ok = rates.first().is_none_or(|first| first.0 == 0)
        && rates.is_sorted_by(|a, b| a.0 < b.0)
        && rates.len() <= MAX_STEPS;
    ensure(ok, here, key, format_args!("these {} pairs", rates.len()), valid)?;
    for &(at, bps) in rates {
        ensure_time(at, 0, here, key)?;
        let valid = "numbers of bit/s from 0 to 1e15";
        ensure((0.0..=1e15).contains(&bps), here, key, bps, valid)?;
    }
    Ok(())
}

fn check_codel(
    codel: &CodelConfig,
    here: impl Fn() -> ScenarioPart + Copy,
    [target, interval]: [&'static str; 2],
) -> Result<(), ScenarioError> {
    ensure_time(codel.target.as_nanos(), 1, here, target)?;
    ensure_time(codel.interval.as_nanos(), 1, here, interval)
}

/// The keys of PIE's times, weights and share, in the order in which they are checked.
const PIE_KEYS: [&str; 6] = [
    "aqm.pie.target_ns",
    "aqm.pie.update_ns",
    "aqm.pie.burst_ns",
    "aqm.pie.alpha",
    "aqm.pie.beta",
    "aqm.pie.ecn_limit",
];
const FQ_PIE_KEYS: [&str; 6] = [
    "aqm.fq_pie.pie.target_ns",
    "aqm.fq_pie.pie.update_ns",
    "aqm.fq_pie.pie.burst_ns",
    "aqm.fq_pie.pie.alpha",
    "aqm.fq_pie.pie.beta",
    "aqm.fq_pie.pie.ecn_limit",
];

fn check_pie(
    pie: &PieConfig,
    here: impl Fn() -> ScenarioPart + Copy,
    keys: [&'static str; 6],
) -> Result<(), ScenarioError> {
    ensure_time(pie.target.as_nanos(), 1, here, keys[0])?;
    ensure_time(pie.update.as_nanos(), MIN_UPDATE_NS, here, keys[1])?;
    ensure_time(pie.burst.as_nanos(), 0, here, keys[2])?;
    let valid = "a finite number, 0 or more";
    for (key, weight) in [(keys[3], pie.alpha), (keys[4], pie.beta)] {
        ensure(weight >= 0.0 && weight.is_finite(), here, key, weight, valid)?;
    }
    let ok = (0.0..=1.0).contains(&pie.ecn_limit);
    ensure(ok, here, keys[5], pie.ecn_limit, "a number from 0 to 1")
}

fn check_dualpi2(
    dualpi2: &DualPi2Config,
    here: impl Fn() -> ScenarioPart + Copy,
) -> Result<(), ScenarioError> {
    let &DualPi2Config { alpha, beta, coupling_factor, classic_protection, .. } = dualpi2;
    ensure_time(dualpi2.target.as_nanos(), 1, here, "aqm.dualpi2.target_ns")?;
    ensure_time(dualpi2.tupdate.as_nanos(), MIN_UPDATE_NS, here, "aqm.dualpi2.tupdate_ns")?;
    ensure_time(dualpi2.step_thresh.as_nanos(), 0, here, "aqm.dualpi2.step_thresh_ns")?;
    let valid = "a finite number, 0 or more";
    for (key, value) in [
        ("aqm.dualpi2.alpha", alpha),
        ("aqm.dualpi2.beta", beta),
        ("aqm.dualpi2.coupling_factor", coupling_factor),
    ] {
        ensure(value >= 0.0 && value.is_finite(), here, key, value, valid)?;
    }
    let (key, ok) = ("aqm.dualpi2.classic_protection", (0.0..=1.0).contains(&classic_protection));
    ensure(ok, here, key, classic_protection, "a number from 0 to 1")
}

impl LinkSpec {
    /// The link's varying rate, if it has one.
    pub(crate) fn rate_process(&self) -> Option<RateProcess> {
        let step = |&(at, bps): &(u64, f64)| (Time::from_nanos(at), (bps + 0.5) as u64);
        let opportunity = |&ms: &u32| Time::ZERO + Span::from_millis(u64::from(ms));
        let rates = self.rates.as_ref().map(|rates| rates.iter().map(step).collect());
        let trace = self.trace_ms.as_ref().map(|trace| trace.iter().map(opportunity).collect());
        rates.map(RateProcess::Piecewise).or(trace.map(RateProcess::Trace))
    }

    /// The transmission time of a full queue of packets of 1500 bytes. `None` if the queue has no
    /// limit or the rate varies.
    pub fn queue_time(&self) -> Option<Span> {
        let rate = Rate::from_bits_per_sec(self.rate_bps?);
        Some(match self.queue? {
            QueueSpec::Packets(packets) => rate.time_for(1500.0 * f64::from(packets)),
            QueueSpec::Bytes(bytes) => rate.time_for(bytes as f64),
            QueueSpec::Ns(ns) => Span::from_nanos(ns),
        })
    }

    /// Checks AQM, rates, losses, reroutes, jitter and reordering.
    pub(crate) fn check_link_options(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        self.check_rate_process()?;
        let has_rate = self.rate_bps.is_some() || self.rates.is_some() || self.trace_ms.is_some();
        if let Some(aqm) = &self.aqm {
            let valid = "a queue, which needs a rate; or null";
            ensure(has_rate, here, "aqm", "given without a rate", valid)?;
            check_aqm(aqm, here)?;
        }
        if let Some(loss_model) = self.loss_model {
            match loss_model {
                LossModel::GilbertElliott(GilbertElliott { p, r, bad, good }) => {
                    for value in [p, r, bad, good] {
                        let valid = "probabilities from 0 to 1";
                        let ok = (0.0..=1.0).contains(&value);
                        ensure(ok, here, "loss_model.gilbert_elliott", value, valid)?;
                    }
                }
                LossModel::Periodic(every) => {
                    ensure(every > 0, here, "loss_model.periodic", every, "1 or more packets")?;
                }
            }
            let valid = "0 on a link with a loss_model";
            ensure(self.loss == 0.0, here, "loss", self.loss, valid)?;
        }
        self.check_loss_steps()?;
        self.check_medium()?;
        self.check_reroutes()?;
        ensure_time(self.jitter_ns, 0, here, "jitter_ns")?;
        if let Some(Reordering { share, delay }) = self.reorder {
            let valid = "a probability from 0 to 1";
            ensure((0.0..=1.0).contains(&share), here, "reorder.share", share, valid)?;
            ensure_time(delay.as_nanos(), 0, here, "reorder.delay_ns")?;
        }
        Ok(())
    }

    fn check_loss_steps(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        let steps = &self.loss_steps;
        let is_alone = steps.is_empty() || (self.loss == 0.0 && self.loss_model.is_none());
        let ok = steps.is_sorted_by(|a, b| a.0 < b.0) && steps.len() <= MAX_STEPS && is_alone;
        let valid = "pairs of time and probability, each time later than the one before, on a link \
                     without loss and loss_model";
        ensure(ok, here, "loss_steps", format_args!("these {} pairs", steps.len()), valid)?;
        for &(at, probability) in steps {
            ensure_time(at, 0, here, "loss_steps")?;
            let valid = "probabilities from 0 to 1";
            ensure((0.0..=1.0).contains(&probability), here, "loss_steps", probability, valid)?;
        }
        Ok(())
    }

    fn check_medium(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        let Some(medium) = &self.medium else { return Ok(()) };
        let valid = "1 or more frames";
        ensure(medium.frames > 0, here, "medium.frames", medium.frames, valid)?;
        ensure_time(medium.time.as_nanos(), 1, here, "medium.time_ns")?;
        ensure_time(medium.busy.as_nanos(), 0, here, "medium.busy_ns")?;
        let has_rate = self.rate_bps.is_some() || self.rates.is_some();
        let valid = "on a link with a rate or rates, without bucket_bytes, and with a queue";
        let is_plain = self.bucket_bytes.is_none() && self.queue != Some(QueueSpec::Packets(0));
        ensure(has_rate && is_plain, here, "medium", "given", valid)
    }

    fn check_reroutes(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        let valid = "pairs of time and delay, each time later than the one before";
        let routes = &self.reroutes;
        let ok = routes.is_sorted_by(|a, b| a.0 < b.0) && routes.len() <= MAX_STEPS;
        ensure(ok, here, "reroutes", format_args!("these {} pairs", routes.len()), valid)?;
        for &(at, delay) in routes {
            ensure_time(at, 0, here, "reroutes")?;
            ensure_time(delay, 0, here, "reroutes")?;
        }
        Ok(())
    }

    fn check_rate_process(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        let given = [self.rate_bps.is_some(), self.rates.is_some(), self.trace_ms.is_some()];
        let count = given.iter().filter(|&&given| given).count();
        let valid = "only one of rate_bps, rates and trace_ms";
        ensure(count <= 1, here, "rate", format_args!("given {count} times"), valid)?;
        if let Some(rates) = &self.rates {
            let valid = "pairs of time and rate";
            ensure(!rates.is_empty(), here, "rates", "none", valid)?;
            check_rates(rates, here, "rates")?;
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
