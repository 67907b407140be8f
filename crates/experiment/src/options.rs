//! Options of TCP stacks and of UDT, as experiment files have them.
//!
//! Times are texts with a unit: `min_rto = "200 ms"` is the stack's `min_rto_ns`.

use crate::call::grouped;
use crate::diagnostic::{KeyPath, Problem, key_path};
use crate::model::{Experiment, Flow, Options};
use crate::quantity::{RATE, TIME, ValueError, fail, shown};
use crate::suggest::{did_you_mean, unknown};
use dumbbell_tcp::{Ecn, Stack};
use dumbbell_udt::TransportOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// An option of a stack or of UDT.
#[derive(Debug)]
pub struct TransportOption {
    /// Its name in files.
    pub name: &'static str,
    /// The values that it takes.
    pub values: OptionValues,
    /// What it is.
    pub about: &'static str,
}

impl TransportOption {
    /// Its name in scenarios, where times are whole nanoseconds and rates whole bits per second.
    fn field(&self) -> Cow<'static, str> {
        match (self.values, self.name) {
            (Time(_), "delayed_ack_timeout") => "delayed_ack_ns".into(),
            (Time(_), name) => format!("{name}_ns").into(),
            (Rate | RateFrom(..), name) => format!("{name}_bps").into(),
            (_, name) => name.into(),
        }
    }
}

/// The values that an option of a stack or of UDT takes.
#[derive(Clone, Copy, Debug)]
pub enum OptionValues {
    /// True or false.
    Bool,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A time of at least so many ns.
    Time(u64),
    /// A rate above zero.
    Rate,
    /// A rate from the first to the second, bit/s.
    RateFrom(u64, u64),
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

use OptionValues::{Bool, OneOf, Rate, RateFrom, Time, Whole};

pub(crate) const fn option(
    name: &'static str,
    values: OptionValues,
    about: &'static str,
) -> TransportOption {
    TransportOption { name, values, about }
}

/// The maximum of the sum of `mss` and `header`: an IP packet, bytes.
const MAX_PACKET: u64 = 65_535;
const U32: u64 = u32::MAX as u64;
const MAX_WINDOW: u64 = dumbbell_tcp::MAX_WINDOW as u64;

/// The options of TCP stacks.
pub static STACK_OPTIONS: &[TransportOption] = &[
    option("mss", Whole(1, MAX_PACKET), "payload bytes of a full segment"),
    option(
        "header",
        Whole(40, 1000),
        "bytes of IP and TCP headers on a data segment; 40 is without timestamps (RFC 7323)",
    ),
    option("initial_window", Whole(1, U32), "initial window, packets (RFC 6928)"),
    option("min_rto", Time(1_000_000), "minimum retransmission timeout"),
    option("rto", OneOf(&["linux", "rfc6298"]), "how the retransmission timeout is computed"),
    option(
        "pacing",
        Bool,
        "whether the transport paces algorithms that set no rate of their own, as Linux under fq",
    ),
    option("tso", Bool, "whether segments leave in bursts sized as by Linux's TSO autosizing"),
    option(
        "byte_counting",
        Bool,
        "whether windows grow by packets acknowledged (RFC 3465), not by acknowledgements",
    ),
    option(
        "loss_detection",
        OneOf(&["rack", "dup-thresh"]),
        "how losses are detected: by time (RFC 8985) or by counting (RFC 6675)",
    ),
    option("tail_loss_probe", Bool, "whether tail loss probes are sent (RFC 8985, section 7)"),
    option("undo", Bool, "whether spurious reductions are undone (RFC 4015, D-SACK)"),
    option("delayed_ack", Bool, "whether acknowledgements of full segments are delayed"),
    option(
        "delayed_ack_timeout",
        Time(0),
        "how long an acknowledgement waits for a second segment",
    ),
    option(
        "quick_acks",
        Whole(0, U32),
        "segments acknowledged individually at the start (Linux's quick ACKs)",
    ),
    option("push", Bool, "whether a segment with PSH is acknowledged immediately"),
    option(
        "autotuning",
        Bool,
        "whether the receive window grows with arriving packets, as Linux's",
    ),
    option(
        "sack_compression",
        Bool,
        "whether acknowledgements of out-of-order segments are compressed (Linux 4.18)",
    ),
    option(
        "ecn",
        OneOf(&["off", "classic", "accurate", "l4s"]),
        "explicit congestion notification: RFC 3168; every mark, as for DCTCP (RFC 8257); or ECT(1) \
         and Accurate ECN, as for Prague (RFC 9331, RFC 9768)",
    ),
    option("receive_window", Whole(1, MAX_WINDOW), "receive window, packets"),
    option(
        "tcp_rmem",
        Whole(4_096, i32::MAX as u64),
        "maximum of the receive buffer, bytes with overhead; 33554432 on a fresh Linux",
    ),
    option(
        "tcp_wmem",
        Whole(4_096, i32::MAX as u64),
        "maximum of the send buffer, bytes with overhead; 4194304 on a fresh Linux",
    ),
    option(
        "slow_start_after_idle",
        Bool,
        "whether the window is cut after an idle time longer than the RTO (RFC 5681, section 4.1)",
    ),
    option("tick", Time(0), "tick of the coarse clock; 0 for an exact one"),
    option(
        "max_burst",
        Whole(0, U32),
        "packets by which the window may exceed the flight size after a recovery; 0 for no limit",
    ),
];

const BUFFER: OptionValues =
    Whole(TransportOptions::MIN_BUFFER as u64, TransportOptions::MAX_BUFFER as u64);

/// The options of UDT.
pub static UDT_OPTIONS: &[TransportOption] = &[
    option(
        "mss",
        Whole(TransportOptions::MIN_MSS as u64, MAX_PACKET),
        "maximum packet size including IP and UDP headers, bytes (UDT_MSS)",
    ),
    option("window", BUFFER, "maximum packets in flight (UDT_FC)"),
    option("send_buffer", BUFFER, "send buffer, packets (UDT_SNDBUF)"),
    option("receive_buffer", BUFFER, "receive buffer, packets (UDT_RCVBUF)"),
    option(
        "ack_interval",
        Whole(0, U32),
        "data packets per acknowledgement; 0 for one acknowledgement every 10 ms only",
    ),
    option(
        "light_acks",
        Bool,
        "whether the receiver sends a light ACK every 64 packets, as UDT4 does",
    ),
    option(
        "nak_repeat",
        Bool,
        "whether NAKs are repeated until the loss is repaired, as the draft specifies",
    ),
    option(
        "skip_gaps",
        Bool,
        "whether a loss is reported once and then abandoned, as in Gu's ns-2 module",
    ),
];

/// Options that are not valid: the name of each and what is wrong with it.
pub type OptionErrors = Vec<(String, ValueError)>;

/// The stack of this name.
///
/// # Errors
/// If there is none.
pub fn stack_named(name: &str) -> Result<Stack, ValueError> {
    Stack::named(name).ok_or_else(|| ValueError(unknown("stack", name, Stack::NAMES)))
}

/// A stack with options laid over it.
///
/// # Errors
/// Every option that it does not have, or whose value is not valid.
pub fn overlay_stack(stack: &Stack, options: &Options) -> Result<Stack, OptionErrors> {
    let stack: Stack = overlay("stack option", STACK_OPTIONS, stack, options)?;
    if u64::from(stack.mss) + u64::from(stack.header) > MAX_PACKET {
        let (mss, header) = (stack.mss, stack.header);
        let problem = format!(
            "{mss} bytes and a header of {header} bytes are more than {} bytes, an IP packet's \
             maximum; write less",
            grouped(MAX_PACKET)
        );
        let key = if options.contains_key("mss") { "mss" } else { "header" };
        return Err(vec![(key.to_owned(), ValueError(problem))]);
    }
    Ok(stack)
}

/// The options of UDT with the defaults for an algorithm.
///
/// # Errors
/// Every option that UDT does not have, or whose value is not valid.
pub fn overlay_udt(cc: &str, options: &Options) -> Result<TransportOptions, OptionErrors> {
    overlay("option of UDT", UDT_OPTIONS, &TransportOptions::for_algorithm(cc), options)
}

/// All options of a stack, as a file has them.
pub fn stack_options(stack: &Stack) -> Options {
    written(STACK_OPTIONS, stack)
}

/// All options of UDT, as a file has them.
pub fn udt_options(options: &TransportOptions) -> Options {
    written(UDT_OPTIONS, options)
}

impl Experiment {
    /// The stack of flows that name none.
    pub(crate) fn base_stack(&self) -> Result<Stack, Vec<Problem>> {
        let named = stack_named(&self.stack);
        let stack = named.map_err(|error| vec![Problem::new(key_path!["stack"], error)])?;
        overlay_stack(&stack, &self.stack_options)
            .map_err(|errors| option_problems(&key_path!["stack_options"], errors))
    }

    /// The stack of a TCP flow at `at`, given the experiment's.
    pub(crate) fn flow_stack(
        &self,
        flow: &Flow,
        base: &Stack,
        at: &KeyPath,
    ) -> Result<Stack, Vec<Problem>> {
        let mut base = match &flow.stack {
            None => base.clone(),
            Some(name) => {
                stack_named(name).map_err(|error| vec![Problem::new(at.then("stack"), error)])?
            }
        };
        if flow.has_algorithm("prague") {
            // As in Linux, where Prague overrides the system's setting.
            base.ecn = Ecn::L4s;
        }
        if flow.stack_options.is_empty() {
            return Ok(base);
        }
        overlay_stack(&base, &flow.stack_options)
            .map_err(|errors| option_problems(&at.then("stack_options"), errors))
    }
}

/// The options of a UDT flow at `at`.
pub(crate) fn flow_udt(flow: &Flow, at: &KeyPath) -> Result<TransportOptions, Vec<Problem>> {
    overlay_udt(&flow.cc, &flow.transport_options)
        .map_err(|errors| option_problems(&at.then("transport_options"), errors))
}

pub(crate) fn option_problems(table: &KeyPath, errors: OptionErrors) -> Vec<Problem> {
    errors.into_iter().map(|(name, error)| Problem::new(table.then(name.as_str()), error)).collect()
}

pub(crate) fn fields(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        other => unreachable!("the options are a table, not {other:?}"),
    }
}

pub(crate) fn written(known: &[TransportOption], value: &impl Serialize) -> Options {
    let fields = fields(value);
    let option = |option: &TransportOption| {
        let value = match (&option.values, &fields[option.field().as_ref()]) {
            (Time(_), ns) => Value::from(TIME.format(ns.as_u64().unwrap_or_default())),
            (Rate | RateFrom(..), bps) => {
                Value::from(RATE.format(bps.as_u64().unwrap_or_default()))
            }
            (_, value) => value.clone(),
        };
        (option.name.to_owned(), value)
    };
    known.iter().map(option).collect()
}

pub(crate) fn overlay<T: Serialize + DeserializeOwned>(
    kind: &str,
    known: &[TransportOption],
    base: &T,
    options: &Options,
) -> Result<T, OptionErrors> {
    let (mut fields, usual) = (fields(base), written(known, base));
    let mut errors = OptionErrors::new();
    for (name, value) in options {
        match find(kind, known, name) {
            Err(error) => errors.push((name.clone(), error)),
            Ok(option) => match option.values.read(value, &usual[name]) {
                Err(error) => errors.push((name.clone(), error)),
                Ok(value) => drop(fields.insert(option.field().into_owned(), value)),
            },
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| vec![(String::new(), ValueError(error.to_string()))])
}

fn find<'a>(
    kind: &str,
    known: &'a [TransportOption],
    name: &str,
) -> Result<&'a TransportOption, ValueError> {
    if let Some(option) = known.iter().find(|option| option.name == name) {
        return Ok(option);
    }
    let names: Vec<_> = known.iter().map(|option| option.name).collect();
    let snake = name.replace('-', "_");
    match known.iter().find(|option| option.name == snake || option.field() == snake) {
        Some(option) => fail!("the option is called {} now", option.name),
        None => Err(ValueError(unknown(kind, &name.replace('-', "_"), &names))),
    }
}

impl OptionValues {
    /// Reads a value as scenarios have it.
    fn read(self, value: &Value, usual: &Value) -> Result<Value, ValueError> {
        let given = shown(value);
        match (self, value) {
            (Bool, Value::Bool(_)) => Ok(value.clone()),
            (Bool, _) => fail!("{given} is not true or false; the usual value is {usual}"),
            (Whole(min, max), _) => match value.as_u64() {
                Some(number) if (min..=max).contains(&number) => Ok(value.clone()),
                _ => fail!(
                    "{given} is not a whole number from {min} to {}; the usual value is {usual}",
                    grouped(max)
                ),
            },
            (Time(min), _) => match TIME.parse_or_zero(value)? {
                ns if ns >= min => Ok(Value::from(ns)),
                _ => fail!("{given} is less than {}; write at least that", TIME.format(min)),
            },
            (Rate, _) => RATE.parse(value).map(Value::from),
            (RateFrom(min, max), _) => match RATE.parse(value)? {
                bps if (min..=max).contains(&bps) => Ok(Value::from(bps)),
                _ => fail!(
                    "{given} is not a rate from {} to {}; the usual value is {usual}",
                    RATE.format(min),
                    RATE.format(max)
                ),
            },
            (OneOf(names), Value::String(name)) if names.contains(&name.as_str()) => {
                Ok(value.clone())
            }
            (OneOf(names), _) => {
                let close = did_you_mean(value.as_str().unwrap_or_default(), names.iter().copied());
                fail!("{given} is none of {}{close}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Options {
        value.as_object().expect("a table").clone().into_iter().collect()
    }

    #[test]
    fn the_tables_have_every_field() {
        assert_eq!(fields(&Stack::linux()).len(), STACK_OPTIONS.len());
        assert_eq!(fields(&TransportOptions::default()).len(), UDT_OPTIONS.len());
    }

    #[test]
    fn what_is_written_out_reads_as_the_same_stack() {
        for name in Stack::NAMES {
            let stack = stack_named(name).expect("a named stack");
            let options = stack_options(&stack);
            assert_eq!(overlay_stack(&Stack::linux(), &options), Ok(stack));
        }
        let udt = TransportOptions::for_algorithm("cubic");
        assert_eq!(overlay_udt("udt", &udt_options(&udt)), Ok(udt));
    }

    #[test]
    fn options_are_laid_over_a_stack() {
        let options = json!({"min_rto": "1 s", "pacing": true, "ecn": "classic", "mss": 1000});
        let stack = overlay_stack(&Stack::linux(), &map(options)).expect("valid options");
        assert_eq!((stack.min_rto_ns, stack.pacing, stack.mss), (1_000_000_000, true, 1000));
        assert_eq!(stack_options(&stack)["min_rto"], json!("1 s"));
    }

    #[test]
    fn every_option_that_is_not_valid_is_named() {
        let errors = |options| overlay_stack(&Stack::linux(), &map(options)).expect_err("wrong");
        for (options, part) in [
            (json!({"pacing": 1}), "1 is not true or false; the usual value is false"),
            (json!({"paceing": true}), "(did you mean \"pacing\"?)"),
            (json!({"mss": 100_000}), "is not a whole number from 1 to 65,535; the usual value"),
            (json!({"mss": 65_500}), "more than 65,535 bytes, an IP packet's maximum"),
            (
                json!({"ecn": "clasic"}),
                "none of off, classic, accurate, l4s (did you mean \"classic\"?)",
            ),
            (json!({"min_rto": 200}), "200 lacks a unit"),
            (json!({"min_rto": "1 us"}), "is less than 1 ms"),
            (json!({"min-rto-ns": 200}), "the option is called min_rto now"),
            (json!({"initial-window": 3}), "the option is called initial_window now"),
        ] {
            let error = errors(options);
            assert!(error[0].1.0.contains(part), "{error:?}");
        }
        assert_eq!(errors(json!({"mss": 0, "undo": 2, "pace": true})).len(), 3);
        let error = overlay_udt("udt", &map(json!({"window": 8}))).expect_err("too small");
        assert!(error[0].1.0.contains("from 32 to 16,777,216"), "{error:?}");
    }

    #[test]
    fn an_unknown_stack_is_an_error() {
        let error = stack_named("linus").expect_err("no stack").to_string();
        assert!(error.starts_with("no stack is called \"linus\" (did you mean \"linux\"?)"));
    }
}
