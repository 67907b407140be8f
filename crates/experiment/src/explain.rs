//! What a key, an algorithm, a queue management, a loss process or a stack is, as text.

use crate::about::{ALGORITHMS, option_of};
use crate::algorithm::{check as check_algorithm, is_object, of_linux};
use crate::apps::APPS;
use crate::aqm::AQMS;
use crate::bulk::{BULK_TRANSPORTS, bulk_options, bulk_transport};
use crate::call::{CallKind, Values};
use crate::keys::{DefaultValue, EXPERIMENT, FLOW, Key, LINK, Table};
use crate::loss::LOSSES;
use crate::medium::MEDIA;
use crate::options::{
    OptionValues, STACK_OPTIONS, TransportOption, stack_named, stack_options, udt_options,
};
use crate::quantity::{RATE, TIME, ValueError};
use crate::quic::{QUIC_OPTIONS, QUIC_STACKS, QuicOptions, native, quic_options, quic_stack};
use crate::rtp::{RTP_OPTIONS, rtp_options};
use crate::suggest::did_you_mean;
use crate::template::TEMPLATES;
use crate::transfers::{ARRIVALS, SIZES};
use dumbbell_cc::{Algorithm, NAMES};
use dumbbell_rtp::RtpOptions;
use dumbbell_tcp::Stack;
use dumbbell_udt::TransportOptions;
use serde_json::Value;

/// An experiment file to begin with, with comments.
pub const STARTER: &str = include_str!("starter.toml");

/// What is written as a call, and in which key.
static CALLS: [(&[CallKind], &str); 7] = [
    (TEMPLATES, "template"),
    (AQMS, "aqm"),
    (LOSSES, "loss"),
    (MEDIA, "medium"),
    (ARRIVALS, "arrivals"),
    (SIZES, "sizes"),
    (APPS, "app"),
];

const TABLES: [&Table; 3] = [&EXPERIMENT, &LINK, &FLOW];

/// Explains a topic: a table (`link`), a key (`link.queue`, `duration`), an algorithm (`cubic`), an
/// template of a link (`leo`), an active queue management (`codel`), a loss process, a stack (`linux`),
/// an option of a stack or of UDT (`stack.min_rto`, `udt.mss`), a QUIC stack (`quinn`), or a bulk transfer
/// protocol (`sabul`). Several lines of plain text.
///
/// # Errors
/// If there is no such topic; the text names a close one and what topics there are.
pub fn explain(topic: &str) -> Result<String, ValueError> {
    let topic = topic.trim();
    let found = table(topic)
        .or_else(|| key(topic))
        .or_else(|| algorithm(topic))
        .or_else(|| media_algorithm(topic))
        .or_else(|| call(topic))
        .or_else(|| stack(topic))
        .or_else(|| quic(topic))
        .or_else(|| linux(topic))
        .or_else(|| bulk(topic))
        .or_else(|| option(topic));
    found.ok_or_else(|| {
        let topics = topics();
        let hint = did_you_mean(topic, topics.iter().map(String::as_str));
        let valid = "write a table (experiment, link, flow), a key such as link.queue, an \
                     algorithm such as cubic, a template such as leo, an aqm such as codel, a loss process such as \
                     gilbert-elliott, a stack such as linux, or an option such as stack.min_rto";
        ValueError(format!("there is no topic \"{topic}\"{hint}; {valid}"))
    })
}

/// All topics that [`explain`] knows.
pub fn topics() -> Vec<String> {
    let mut topics = Vec::new();
    for table in TABLES {
        topics.push(table.name.to_owned());
        topics.extend(table.keys.iter().map(|key| qualified(table, key)));
    }
    topics.sort();
    topics.dedup(); // `link` is a table and a key
    let built_in = ALGORITHMS.iter().filter(|(name, _)| NAMES.contains(name));
    topics.extend(built_in.map(|(name, _)| (*name).to_owned()));
    topics.extend(dumbbell_rtp::ALGORITHMS.iter().map(|(name, _)| (*name).to_owned()));
    topics
        .extend(CALLS.iter().flat_map(|(kinds, _)| kinds.iter()).map(|kind| kind.name.to_owned()));
    topics.extend(Stack::NAMES.iter().map(|name| (*name).to_owned()));
    topics.extend(STACK_OPTIONS.iter().map(|option| format!("stack.{}", option.name)));
    topics.extend(crate::options::UDT_OPTIONS.iter().map(|option| format!("udt.{}", option.name)));
    topics.extend(QUIC_OPTIONS.iter().map(|option| format!("quic.{}", option.name)));
    topics.extend(RTP_OPTIONS.iter().map(|option| format!("rtp.{}", option.name)));
    for transport in BULK_TRANSPORTS {
        topics.push(transport.name.to_owned());
        let options = transport.options.iter();
        topics.extend(options.map(|option| format!("{}.{}", transport.name, option.name)));
    }
    for stack in QUIC_STACKS {
        topics.push(stack.name.to_owned());
        topics.extend(stack.algorithms.iter().map(|(name, _)| format!("{}:{name}", stack.name)));
    }
    topics
}

fn qualified(table: &Table, key: &Key) -> String {
    match table.name {
        "experiment" => key.name.to_owned(),
        name => format!("{name}.{}", key.name),
    }
}

fn table(topic: &str) -> Option<String> {
    let table = TABLES.into_iter().find(|table| table.name == topic)?;
    let keys = table.keys.iter().map(|key| (key.name, first_clause(key.about).to_owned()));
    Some(format!("The keys of {}:\n{}", article(table.name), columns(keys.collect())))
}

fn article(name: &str) -> String {
    format!("{} {name}", if name.starts_with('e') { "an" } else { "a" })
}

fn first_clause(text: &str) -> &str {
    text.split(';').next().unwrap_or(text)
}

fn key(topic: &str) -> Option<String> {
    let (table, name) = match topic.split_once('.') {
        Some((table, name)) => (TABLES.into_iter().find(|other| other.name == table)?, name),
        None => (&EXPERIMENT, topic),
    };
    let key = table.key(name)?;
    let default = match key.default {
        DefaultValue::Required => "It must be given.".to_owned(),
        DefaultValue::Absent(meaning) => format!("If it is not given: {meaning}."),
        DefaultValue::Text("") | DefaultValue::EmptyList | DefaultValue::EmptyTable => {
            "It may be left out.".to_owned()
        }
        default => format!("Default: {}.", default.value().unwrap_or_default()),
    };
    Some(format!("{}: {}.\n{default}\n", qualified(table, key), key.about))
}

fn algorithm(topic: &str) -> Option<String> {
    let (name, about) = ALGORITHMS.iter().find(|(name, _)| *name == topic)?;
    let options = Algorithm::options(name).ok()?;
    let lines = options.iter().map(|option| {
        let about = option_of(name, option.name).expect("a test finds that each is described");
        (option.name, format!("{about}: {} (default {})", option.valid, option.default))
    });
    let example =
        options.first().map(|option| format!("{name}({}={})", option.name, option.default));
    Some(described(name, about, lines.collect(), "cc", example))
}

/// An algorithm of media, whose options are those of its transport.
fn media_algorithm(topic: &str) -> Option<String> {
    let (name, about) = dumbbell_rtp::ALGORITHMS.iter().find(|(name, _)| *name == topic)?;
    let lines = RTP_OPTIONS.iter().map(|option| (option.name, option.about.to_owned()));
    let lines = columns(lines.collect());
    Some(format!(
        "{name}: {about}.\nFor media, with transport = \"rtp\", app_rate (the maximum rate of the \
         media), and in transport_options:\n{lines}In a file: cc = \"{name}\"\n"
    ))
}

fn call(topic: &str) -> Option<String> {
    let find = |kinds: &'static [CallKind]| kinds.iter().find(|kind| kind.name == topic);
    let (kind, key) = CALLS.iter().find_map(|&(kinds, key)| Some((find(kinds)?, key)))?;
    let lines = kind.options.iter().map(|option| {
        let default =
            option.default.map_or("must be given".to_owned(), |text| format!("default {text}"));
        (option.name, format!("{}: {} ({default})", option.about, values(option.values)))
    });
    Some(described(kind.name, kind.about, lines.collect(), key, example(kind)))
}

/// A call with every option that must be given, or with the first one.
fn example(kind: &CallKind) -> Option<String> {
    let required: Vec<_> = kind.options.iter().filter(|option| option.default.is_none()).collect();
    let shown = if required.is_empty() { kind.options.iter().take(1).collect() } else { required };
    let pairs = shown.iter().map(|option| {
        let value = match (option.default, option.values) {
            (Some("off") | None, Values::Quantity(of) | Values::QuantityOrOff(of)) => of.example,
            (None, Values::Count(..)) => "1000",
            (None, _) => "0.01",
            (Some(default), _) => default,
        };
        format!("{}={value}", option.name)
    });
    let pairs: Vec<_> = pairs.collect();
    (!pairs.is_empty()).then(|| format!("{}({})", kind.name, pairs.join(", ")))
}

fn values(values: Values) -> String {
    match values {
        Values::Quantity(dimension) => format!("{}, such as {}", dimension.name, dimension.example),
        Values::QuantityOrOff(dimension) => format!("{} or off", dimension.name),
        Values::QuantityOf(dimensions) => {
            let names: Vec<_> = dimensions.iter().map(|dimension| dimension.name).collect();
            names.join(" or ")
        }
        Values::Number(max) => format!("a number from 0 to {max}"),
        Values::Count(min, max) => format!("a whole number from {min} to {max}"),
        Values::Switch => "on or off".to_owned(),
        Values::OneOf(names) => format!("one of {}", names.join(", ")),
    }
}

fn described(
    name: &str,
    about: &str,
    options: Vec<(&str, String)>,
    key: &str,
    example: Option<String>,
) -> String {
    let mut text = format!("{name}: {about}.\n");
    if options.is_empty() {
        text += "It has no options.\n";
    } else {
        text += &format!("Options:\n{}", columns(options));
    }
    text + &format!("In a file: {key} = \"{}\"\n", example.as_deref().unwrap_or(name))
}

fn stack(topic: &str) -> Option<String> {
    let stack = stack_named(topic).ok()?;
    let options = stack_options(&stack);
    let lines = STACK_OPTIONS.iter().map(|option| (option.name, options[option.name].to_string()));
    Some(format!("{topic}: a TCP stack. Its options:\n{}", columns(lines.collect())))
}

/// A QUIC stack, or an algorithm of one.
fn quic(topic: &str) -> Option<String> {
    if let Some((stack, name)) = native(topic) {
        let (_, about) = stack.algorithms.iter().find(|(known, _)| *known == name)?;
        return Some(described(topic, about, Vec::new(), "cc", None));
    }
    let stack = quic_stack(topic)?;
    let lines = stack.algorithms.iter().map(|(name, about)| (*name, (*about).to_owned()));
    let lines = columns(lines.collect());
    Some(format!(
        "{topic}: a QUIC stack, {}, for flows with transport = \"quic\". Its own algorithms, written \
         {topic}:NAME:\n{lines}",
        stack.about
    ))
}

/// An algorithm that only a kernel has.
fn linux(topic: &str) -> Option<String> {
    let name = of_linux(topic).filter(|_| check_algorithm(&topic.into()).is_ok())?;
    let what = match is_object(name) {
        true => "the algorithm of an eBPF object, which is loaded into the kernel for the run",
        false => "the kernel's algorithm of this name, whatever it is",
    };
    Some(format!(
        "{topic}: {what}.\nIt runs with real packets only (--backend linux), and has no options.\n\
         In a file: cc = \"{topic}\"\n"
    ))
}

/// A bulk transfer protocol.
fn bulk(topic: &str) -> Option<String> {
    let transport = bulk_transport(topic)?;
    let lines = transport.options.iter().map(|option| (option.name, option.about.to_owned()));
    Some(format!(
        "{topic}: {}.\nIts transport_options:\n{}In a file: transport = \"{topic}\", cc = \"none\"\n",
        transport.about,
        columns(lines.collect())
    ))
}

/// The options of a bulk transfer protocol, and their defaults.
fn options_of_bulk(name: &str) -> Option<(&'static [TransportOption], crate::Options)> {
    let options = bulk_options(name, &dumbbell_bulk::Options::named(name)?);
    Some((bulk_transport(name)?.options, options))
}

fn option(topic: &str) -> Option<String> {
    let (table, name) = topic.split_once('.')?;
    let (known, defaults, key): (&[TransportOption], _, _) = match table {
        "stack" | "stack_options" => {
            (STACK_OPTIONS, stack_options(&Stack::linux()), "stack_options")
        }
        "udt" | "transport_options" => {
            let defaults = udt_options(&TransportOptions::default());
            (crate::options::UDT_OPTIONS, defaults, "transport_options")
        }
        "rtp" => (RTP_OPTIONS, rtp_options(&RtpOptions::default()), "transport_options"),
        "quic" => (QUIC_OPTIONS, quic_options(&QuicOptions::default()), "transport_options"),
        bulk => {
            let (known, defaults) = options_of_bulk(bulk)?;
            (known, defaults, "transport_options")
        }
    };
    let option = known.iter().find(|option| option.name == name)?;
    let default: &Value = defaults.get(name)?;
    let values = match option.values {
        OptionValues::Bool => "true or false".to_owned(),
        OptionValues::Whole(min, max) => format!("a whole number from {min} to {max}"),
        OptionValues::Time(min) => format!("a time of at least {}", TIME.format(min)),
        OptionValues::Rate => "a rate".to_owned(),
        OptionValues::RateFrom(min, max) => {
            format!("a rate from {} to {}", RATE.format(min), RATE.format(max))
        }
        OptionValues::OneOf(names) => format!("one of {}", names.join(", ")),
    };
    let default_of = if key == "stack_options" { " in linux" } else { "" };
    Some(format!(
        "{table}.{name}: {}; {values}.\nDefault{default_of}: {default}.\n\
         In a file: {key} = {{ {name} = {default} }}\n",
        option.about
    ))
}

/// Lines of a name and a text, the texts below each other.
fn columns(lines: Vec<(&str, String)>) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.into_iter().map(|(name, text)| format!("  {name:width$}  {text}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::{Experiment, NoEnvironment};

    #[test]
    fn every_topic_is_explained() {
        for topic in topics() {
            let text = explain(&topic).expect(&topic);
            assert!(text.lines().count() > 1 && text.ends_with('\n'), "{text}");
        }
    }

    #[test]
    fn a_key_an_algorithm_and_an_option_have_their_defaults() {
        for (topic, part) in [
            ("link.queue", "If it is not given: \"unlimited\" with an aqm and \"1 BDP\" without."),
            ("flow.start", "Default: \"0 s\"."),
            (
                "hybla",
                "rtt0  the round-trip time whose growth every flow has (RTT0): 1 ms to 10 s (default 25 ms)",
            ),
            ("cubic", "slow_start"),
            ("codel", "target"),
            ("stack.min_rto", "Default in linux: \"200 ms\"."),
            ("udt.mss", "In a file: transport_options = { mss = 1500 }"),
            ("experiment", "The keys of an experiment:"),
        ] {
            let text = explain(topic).expect(topic);
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_example_of_every_call_is_valid() {
        for &(kinds, key) in &CALLS {
            for kind in kinds {
                let text = example(kind).unwrap_or_else(|| kind.name.to_owned());
                let call = Call::from_value(&Value::from(text.as_str()), "a call");
                assert!(
                    call.and_then(|call| call.resolve(kinds, "a call")).is_ok(),
                    "{key}: {text}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_topic_names_a_close_one() {
        let error = explain("link.queu").expect_err("no topic").to_string();
        assert!(error.contains("(did you mean \"link.queue\"?)"), "{error}");
    }

    #[test]
    fn the_starter_is_a_valid_experiment() {
        let experiment = Experiment::from_toml(STARTER, "", &[] as &[&str]).expect("valid");
        experiment.resolve(&NoEnvironment).expect("its parts fit together");
    }
}
