//! Validation of scenarios.

use crate::datagram_host::{ExternalSpec, InvalidKey};
use crate::link_spec::check_rates;
use crate::scenario::{FlowSpec, LinkSpec, QueueSpec, Scenario, ScenarioError, ScenarioPart};
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_tcp::{MultipathSender, Scheduler, Stack};
use dumbbell_udt::{OptionError, TransportOptions};
use dumbbell_units::{Span, Time};
use std::collections::BTreeSet;
use std::fmt::Display;

/// The maximum number of flows of a scenario.
pub const MAX_FLOWS: usize = 1_000_000;
/// The maximum of the expected number of transfers of a run.
pub const MAX_TRANSFERS: usize = 4_000_000;
/// The maximum number of links of a path.
const MAX_PATH: usize = 250;
/// The maximum number of rows of the series: ten thousand flows sampled ten thousand times.
const MAX_ROWS: u64 = 100_000_000;
/// The maximum of all times: over 11 days.
const MAX_TIME_NS: u64 = 1_000_000_000_000_000;
const MAX_RATE_BPS: f64 = 1e15;
/// The maximum number of data packets of a flow, which are numbered in 32 bits.
pub const MAX_PACKETS: u64 = u32::MAX as u64 - 1;
/// A shorter nonzero RTO would only slow the run down.
const MIN_RTO_NS: u64 = 1_000_000;

/// Returns an error unless `ok`: `key` of `part` cannot be `value`; it takes `valid`.
pub(crate) fn ensure(
    ok: bool,
    part: impl FnOnce() -> ScenarioPart,
    key: &'static str,
    value: impl Display,
    valid: impl Display,
) -> Result<(), ScenarioError> {
    if ok {
        return Ok(());
    }
    let (part, value, valid) = (part(), value.to_string(), valid.to_string());
    Err(ScenarioError::Value { part, key, value, valid })
}

pub(crate) fn ensure_time(
    ns: u64,
    least: u64,
    part: impl FnOnce() -> ScenarioPart,
    key: &'static str,
) -> Result<(), ScenarioError> {
    let valid = format_args!("whole nanoseconds from {least} to {MAX_TIME_NS} (11 days)");
    ensure((least..=MAX_TIME_NS).contains(&ns), part, key, ns, valid)
}

fn ensure_rate(
    bps: Option<f64>,
    part: impl FnOnce() -> ScenarioPart,
    key: &'static str,
) -> Result<(), ScenarioError> {
    let Some(bps) = bps else { return Ok(()) };
    let valid = "a number of bit/s from 1 to 1e15, or null for no limit";
    ensure((1.0..=MAX_RATE_BPS).contains(&bps), part, key, bps, valid)
}

/// Names as errors list them: at most ten.
fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = if names.len() > 10 { ", ..." } else { "" };
    names.take(10).collect::<Vec<_>>().join(", ") + more
}

impl Scenario {
    /// Checks that the scenario can be simulated. Needed after its public fields were changed.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Scenario;
        ensure_time(self.duration_ns, 1, here, "duration_ns")?;
        ensure_time(self.sample_ns, 1, here, "sample_ns")?;
        let valid =
            format_args!("a time before the end, which is duration_ns: {}", self.duration_ns);
        ensure(self.warmup_ns < self.duration_ns, here, "warmup_ns", self.warmup_ns, valid)?;
        ensure_time(self.start_jitter_ns, 0, here, "start_jitter_ns")?;
        let flows = self.flows.len();
        let valid = format_args!("from 1 to {MAX_FLOWS} flows");
        ensure((1..=MAX_FLOWS).contains(&flows), here, "flows", flows, valid)?;
        let subflows: usize =
            self.flows.iter().map(|flow| 1 + flow.additional_subflows.len()).sum();
        let valid = format_args!("paths of at most {MAX_FLOWS} subflows in all");
        ensure(subflows <= MAX_FLOWS, here, "flows", subflows, valid)?;
        let rows = self.samples().saturating_mul(subflows as u64);
        let valid = format_args!("an interval that gives at most {MAX_ROWS} rows, not {rows}");
        ensure(rows <= MAX_ROWS, here, "sample_ns", self.sample_ns, valid)?;
        self.check_links()?;
        self.check_flows()?;
        let transfers = self.flows.iter().filter_map(|flow| flow.transfers.as_ref());
        let duration = Span::from_nanos(self.duration_ns);
        let transfers: f64 = transfers.map(|of| of.arrivals.expected(duration)).sum();
        let valid = format_args!("flows of at most {MAX_TRANSFERS} transfers in all");
        ensure(transfers <= MAX_TRANSFERS as f64, here, "flows", transfers, valid)
    }

    /// The number of samples: at zero, at every interval, and at the end.
    pub(crate) fn samples(&self) -> u64 {
        self.duration_ns.div_ceil(self.sample_ns) + 1
    }

    fn check_links(&self) -> Result<(), ScenarioError> {
        let mut names = BTreeSet::new();
        for link in &self.links {
            let here = || ScenarioPart::Link(link.name.clone());
            let valid = "a name that no other link has";
            ensure(names.insert(&link.name), here, "name", &link.name, valid)?;
            link.check()?;
        }
        Ok(())
    }

    fn check_flows(&self) -> Result<(), ScenarioError> {
        let links: BTreeSet<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
        let known = || list(self.links.iter().map(|link| link.name.as_str()));
        let mut names = BTreeSet::new();
        for flow in &self.flows {
            let here = || ScenarioPart::Flow(flow.name.clone());
            let valid = "a name that no other flow has";
            ensure(names.insert(&flow.name), here, "name", &flow.name, valid)?;
            let additional_subflows = flow.additional_subflows.iter().flat_map(|subflow| {
                [
                    ("additional_subflows.path", &subflow.path, 1),
                    ("additional_subflows.return_path", &subflow.return_path, 0),
                ]
            });
            let first = [("path", &flow.path, 1), ("return_path", &flow.return_path, 0)];
            for (key, path, least) in first.into_iter().chain(additional_subflows) {
                let valid = format_args!("from {least} to {MAX_PATH} links");
                ensure((least..=MAX_PATH).contains(&path.len()), here, key, path.len(), valid)?;
                for link in path {
                    let valid = || format!("names of links, which are {}", known());
                    if !links.contains(link.as_str()) {
                        ensure(false, here, key, format_args!("\"{link}\""), valid())?;
                    }
                }
            }
            flow.check(self.start_jitter_ns)?;
        }
        Ok(())
    }
}

impl LinkSpec {
    fn check(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Link(self.name.clone());
        ensure_rate(self.rate_bps, here, "rate_bps")?;
        ensure_time(self.delay_ns, 0, here, "delay_ns")?;
        let valid = "a probability from 0 to 1, 1 excluded";
        ensure((0.0..1.0).contains(&self.loss), here, "loss", self.loss, valid)?;
        self.check_link_options()?;
        if let Some(depth) = self.bucket_bytes {
            let valid = "above 0, on a link with a rate; or null for a line";
            ensure(depth > 0 && self.rate_bps.is_some(), here, "bucket_bytes", depth, valid)?;
        }
        let (size, unit) = match self.queue {
            None => return Ok(()),
            Some(QueueSpec::Packets(packets)) => (u64::from(packets), "packets"),
            Some(QueueSpec::Bytes(bytes)) => (bytes, "bytes"),
            Some(QueueSpec::Ns(ns)) => (ns, "ns"),
        };
        let value = format_args!("{size} {unit}");
        let valid = "bytes or ns above 0, packets (above 0 with an aqm), or null for no limit";
        let may_be_empty = unit == "packets" && self.aqm.is_none();
        ensure(size > 0 || may_be_empty, here, "queue", value, valid)
    }
}

impl FlowSpec {
    fn check(&self, jitter_ns: u64) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        ensure_time(self.return_delay_ns, 0, here, "return_delay_ns")?;
        self.check_multipath()?;
        ensure(self.dscp < 64, here, "dscp", self.dscp, "a number from 0 to 63")?;
        ensure_time(self.start_ns, 0, here, "start_ns")?;
        if let Some(stop) = self.stop_ns {
            let start = self.start_ns.saturating_add(jitter_ns);
            let valid = format_args!("a time after start_ns + start_jitter_ns, which is {start}");
            ensure(stop > start, here, "stop_ns", stop, valid)?;
        }
        self.check_write_rates()?;
        match &self.udt {
            None => self.check_stack(&self.stack)?,
            Some(options) => self.check_udt(options)?,
        }
        if let Some(bytes) = self.bytes {
            let most = u64::from(self.init(Time::ZERO, 0).mss) * MAX_PACKETS;
            let valid = format_args!("from 1 to {most} bytes, or null for no limit");
            ensure((1..=most).contains(&bytes), here, "bytes", bytes, valid)?;
        }
        self.check_transfers()?;
        self.check_app()?;
        if let Some(spec) = &self.external {
            return self.check_external(spec);
        }
        if self.udp {
            return self.check_udp();
        }
        match (&self.algorithm_factory, &self.kernel_cc) {
            // A factory cannot fail, and calling it here would be visible to its user.
            (Some(_), _) => Ok(()),
            // The kernel may have algorithms that are not built in.
            (None, Some(_)) => Ok(()),
            (None, None) if self.cc.starts_with("linux:") => {
                let here = || ScenarioPart::Flow(self.name.clone());
                let valid = "an algorithm of the simulator; the kernel's are for real packets";
                ensure(false, here, "cc", &self.cc, valid)
            }
            (None, None) => self.algorithm(&self.init(Time::ZERO, 0)).map(drop),
        }
    }

    /// A flow over UDP sends at the rate of its application.
    fn check_udp(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        let is_plain = self.udt.is_none() && self.additional_subflows.is_empty() && !self.log;
        let is_paced = !self.write_rates().is_empty() && self.transfers.is_none();
        let valid =
            "true with application rates, and without udt, additional_subflows, transfers, log";
        ensure(is_plain && is_paced, here, "udp", self.udp, valid)
    }

    /// A flow of datagrams has one path, and endpoints of another crate, which check it too.
    fn check_external(&self, spec: &ExternalSpec) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        let is_plain = self.udt.is_none() && self.additional_subflows.is_empty();
        let is_plain = is_plain && !self.udp && self.transfers.is_none();
        let valid = "null beside udp, udt, additional_subflows and transfers";
        ensure(is_plain, here, "external", &spec.transport, valid)?;
        let valid = "a transport whose endpoints this program has";
        let Some(factory) = &self.endpoint_factory else {
            return ensure(false, here, "external", &spec.transport, valid);
        };
        let checked = factory.check(self, spec);
        checked.map_err(|InvalidKey { key, value, valid }| ScenarioError::Value {
            part: here(),
            key,
            value,
            valid,
        })
    }

    /// A flow of transfers is TCP's, of one path, and has nothing else to send.
    fn check_transfers(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        let Some(transfers) = &self.transfers else { return Ok(()) };
        let is_plain = self.udt.is_none() && self.additional_subflows.is_empty() && !self.log;
        let sends = self.bytes.is_some() || !self.write_rates().is_empty();
        let valid = "null beside udt, additional_subflows, log, bytes and application rates";
        ensure(is_plain && !sends, here, "transfers", "given", valid)?;
        let (ok, valid) = transfers.is_valid();
        ensure(ok, here, "transfers", format_args!("{transfers:?}"), valid)
    }

    /// An application that waits is TCP's, of one path, and all that the flow sends.
    fn check_app(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        let Some(app) = &self.app else { return Ok(()) };
        let is_plain = self.udt.is_none() && self.external.is_none() && !self.udp;
        let is_plain = is_plain && self.additional_subflows.is_empty();
        let sends =
            self.bytes.is_some() || self.transfers.is_some() || !self.write_rates().is_empty();
        let valid = "null beside udp, udt, external, additional_subflows, transfers, bytes and \
                     application rates";
        ensure(is_plain && !sends, here, "app", "given", valid)?;
        let (ok, valid) = app.is_valid();
        ensure(ok, here, "app", format_args!("{app:?}"), valid)
    }

    fn check_write_rates(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        ensure_rate(self.app_rate_bps, here, "app_rate_bps")?;
        let valid = "none beside app_rate_bps";
        let ok = self.app_rate_bps.is_none() || self.app_rates.is_empty();
        ensure(ok, here, "app_rates", "given", valid)?;
        check_rates(&self.app_rates, here, "app_rates")
    }

    /// The flow's algorithm.
    pub(crate) fn algorithm(&self, init: &ConnectionConfig) -> Result<Algorithm, ScenarioError> {
        if let Some(factory) = &self.algorithm_factory {
            return Ok(factory.make(init));
        }
        let part = || ScenarioPart::Flow(self.name.clone());
        let made = Algorithm::parse(&self.cc, init);
        made.map_err(|error| ScenarioError::Algorithm { part: part(), error })
    }

    fn check_udt(&self, options: &TransportOptions) -> Result<(), ScenarioError> {
        let bad = |OptionError { key, value, min, max, unit }| ScenarioError::Value {
            part: ScenarioPart::Flow(self.name.clone()),
            key,
            value: value.to_string(),
            valid: format!("from {min} to {max} {unit}"),
        };
        options.check().map_err(bad)
    }

    fn check_multipath(&self) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        for subflow in &self.additional_subflows {
            ensure_time(subflow.return_delay_ns, 0, here, "additional_subflows.return_delay_ns")?;
        }
        let most = MultipathSender::MAX_SUBFLOWS;
        let valid = format_args!("at most {} further paths", most - 1);
        ensure(
            self.additional_subflows.len() < most,
            here,
            "additional_subflows",
            self.additional_subflows.len(),
            valid,
        )?;
        let (mss, least) = (self.stack.mss, Stack::MIN_MULTIPATH_MSS);
        let valid = format_args!("at least {least} bytes for a flow of several paths");
        let is_valid = self.additional_subflows.is_empty() || mss >= least;
        ensure(is_valid, here, "stack.mss", mss, valid)?;
        let valid = "null for a flow of several paths";
        ensure(
            self.additional_subflows.is_empty() || self.udt.is_none(),
            here,
            "udt",
            "given",
            valid,
        )?;
        let known = Scheduler::named(&self.scheduler).is_some();
        let valid = format_args!("one of {}", Scheduler::NAMES.join(", "));
        ensure(known, here, "scheduler", &self.scheduler, valid)
    }

    fn check_stack(&self, stack: &Stack) -> Result<(), ScenarioError> {
        let here = || ScenarioPart::Flow(self.name.clone());
        let valid = "at least 1 byte, and at most 65,535 together with stack.header";
        let size = u32::from(stack.mss) + u32::from(stack.header);
        ensure(stack.mss > 0 && size <= 0xffff, here, "stack.mss", stack.mss, valid)?;
        // The minimum is IPv4's and TCP's headers without options. SACK blocks add up to 28 bytes.
        let valid = "from 40 to 1,000 bytes";
        let header = stack.header;
        ensure((40..=1000).contains(&header), here, "stack.header", header, valid)?;
        for (key, packets) in [
            ("stack.initial_window", stack.initial_window),
            ("stack.receive_window", stack.receive_window),
        ] {
            ensure(packets > 0, here, key, packets, "at least 1 packet")?;
        }
        ensure_time(stack.min_rto_ns, MIN_RTO_NS, here, "stack.min_rto_ns")?;
        ensure_time(stack.tick_ns, 0, here, "stack.tick_ns")?;
        ensure_time(stack.delayed_ack_ns, 0, here, "stack.delayed_ack_ns")
    }

    /// The configuration with which the flow's algorithm starts.
    pub(crate) fn init(&self, now: Time, seed: u64) -> ConnectionConfig {
        let (mss, initial_window, jiffy) = match &self.udt {
            None => (self.stack.mss, self.stack.initial_window, self.stack.tick_ns),
            Some(options) => (options.max_payload(), TransportOptions::INITIAL_WINDOW, 0),
        };
        ConnectionConfig::new(now, u32::from(mss))
            .with_initial_window(f64::from(initial_window))
            .with_seed(seed)
            .with_jiffy(Span::from_nanos(jiffy))
    }
}
