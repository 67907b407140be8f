//! Templates of links: `leo`, `wifi(stations=2)`. A template stands for plain keys of the link, such
//! as rates and reroutes, which resolving writes in its place.
//!
//! What varies at random is drawn from the template's own seed, so that all runs of an experiment
//! have the same path, and two links with one seed vary together.

mod access;
mod cellular;
mod leo;
mod wifi;

use crate::call::{Call, CallKind, OptionKind, Resolved, Values};
use crate::loss::Loss;
use crate::model::Link;
use crate::quantity::{RATE, SIZE, TIME, ValueError, fail};
use crate::timeline::{MAX_STEPS, Steps, check_count, format_rates, format_reroutes};
use dumbbell_sim::Draws;
use serde_json::Value;

const WHAT: &str = "a template of a link";

const fn option(
    name: &'static str,
    default: &'static str,
    values: Values,
    about: &'static str,
) -> OptionKind {
    OptionKind { name, default: Some(default), values, about }
}

const fn rtt(default: &'static str, about: &'static str) -> OptionKind {
    option("rtt", default, Values::Quantity(&TIME), about)
}

const SEED: OptionKind =
    option("seed", "1", Values::Count(0, 1_000_000), "from what all that varies is drawn");

/// The templates that links can have.
pub static TEMPLATES: &[CallKind] =
    &[access::CABLE, cellular::FIVE_G, leo::LEO, cellular::LTE, access::POLICER, wifi::WIFI];

/// The keys that a template stands for, in base units.
#[derive(Debug, Default, PartialEq)]
struct Path {
    rate: Option<u64>,
    rates: Steps,
    trace: Vec<u32>,
    burst: Option<u64>,
    delay: u64,
    reroutes: Steps,
    queue: Option<String>,
    loss: Vec<(u64, f64)>,
    jitter: u64,
    medium: Option<String>,
}

/// Reads a template, as text or as a table, and completes its options.
///
/// # Errors
/// If there is no such template, or it has no such option, or a value is not valid.
pub fn resolve(value: &Value) -> Result<Resolved, ValueError> {
    Call::from_value(value, WHAT)?.resolve(TEMPLATES, WHAT)
}

impl Link {
    /// The link with the keys that its template stands for, in a run of `duration` ns. Keys that the
    /// link has itself take precedence, a delay, a jitter and losses if they are above 0.
    ///
    /// # Errors
    /// If the template gives more steps than a link may have.
    pub(crate) fn expanded(&self, duration: u64) -> Result<Link, ValueError> {
        let Some(text) = &self.template else { return Ok(self.clone()) };
        let template = resolve(&Value::from(text.as_str())).expect("a checked template");
        let path = path(&template, duration)?;
        let mut link = Link { template: None, ..self.clone() };
        if self.rate.is_none() && self.rates.is_none() && self.trace.is_none() {
            link.rate = path.rate.map(|rate| RATE.format(rate));
            link.rates = given(&path.rates).map(|rates| format_rates(rates));
            link.trace = given(&path.trace).map(|times| Value::from(times.clone()));
        }
        link.burst = self.burst.clone().or(path.burst.map(|burst| SIZE.format(burst)));
        if TIME.read(&self.delay) == Ok(0) && self.reroutes.is_none() {
            link.delay = TIME.format(path.delay);
            link.reroutes = given(&path.reroutes).map(|steps| format_reroutes(steps));
        }
        link.queue = self.queue.clone().or(path.queue);
        let is_lossy = Loss::parse(&self.loss).expect("checked losses").is_lossy();
        if !is_lossy && !path.loss.is_empty() {
            link.loss = Loss::Steps(path.loss).to_value();
        }
        if TIME.read(&self.jitter) == Ok(0) {
            link.jitter = TIME.format(path.jitter);
        }
        link.medium = self.medium.clone().or(path.medium);
        Ok(link)
    }
}

fn given<T>(list: &Vec<T>) -> Option<&Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// What a template stands for in a run of `duration` ns.
fn path(template: &Resolved, duration: u64) -> Result<Path, ValueError> {
    let mut path = match template.kind.name {
        "leo" => leo::path(template, duration)?,
        "wifi" => wifi::path(template, duration),
        "lte" => cellular::lte(template, duration),
        "5g" => cellular::five_g(template, duration),
        "cable" => access::cable(template),
        "policer" => access::policer(template),
        name => unreachable!("{name} is in the table of templates"),
    };
    for (count, what, advice) in [
        (path.rates.len(), "steps", "let it change less often, or the run be shorter"),
        (path.trace.len(), "lines of a trace", "write a lower rate, or let the run be shorter"),
    ] {
        if let Err(ValueError(text)) = check_count(count, what) {
            fail!("{template}: {text}; {advice}")
        }
    }
    // What is drawn around a mean may be more than a file may say. No run lasts as long.
    path.rates.retain(|(at, _)| *at <= TIME.max);
    path.rates.iter_mut().for_each(|(_, rate)| *rate = (*rate).min(RATE.max));
    path.reroutes.iter_mut().for_each(|(_, delay)| *delay = (*delay).min(TIME.max));
    Ok(path)
}

/// The random numbers of a template.
fn draws(template: &Resolved) -> Draws {
    Draws::new(template.whole("seed"))
}

/// Uniform between two values.
fn between(draws: &mut Draws, low: f64, high: f64) -> f64 {
    low + (high - low) * draws.uniform()
}

/// A rate in whole kbit/s, at least one of them.
fn whole_kbit(rate: f64) -> u64 {
    ((rate / 1e3 + 0.5) as u64).max(1) * 1000
}

/// A time in whole steps of `step` ns.
fn rounded(ns: f64, step: u64) -> u64 {
    (ns / step as f64 + 0.5) as u64 * step
}

const MS: u64 = 1_000_000;

#[cfg(test)]
mod tests;
