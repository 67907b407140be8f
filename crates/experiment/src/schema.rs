//! The JSON Schema of experiment files, for editors.

use crate::algorithm::NO_ALGORITHM;
use crate::apps::APPS;
use crate::aqm::{AQMS, NO_AQM};
use crate::axis::{MAX_VALUES, SCALES};
use crate::bulk::BULK_TRANSPORTS;
use crate::call::{CallKind, Values};
use crate::check_flow::MAX_PATHS;
use crate::keys::{DefaultValue, EXPERIMENT, FLOW, Key, Kind, LINK, Table};
use crate::loss::LOSSES;
use crate::medium::MEDIA;
use crate::options::{OptionValues, STACK_OPTIONS, TransportOption, UDT_OPTIONS};
use crate::quantity::{Dimension, NO_QUEUE, QUEUE_DIMENSIONS, RATE, SIZE, TIME, UNLIMITED};
use crate::quic::QUIC_OPTIONS;
use crate::read::{DSCPS, MAX_SEEDS, TRANSPORTS, all_stacks};
use crate::rtp::{RTP_OPTIONS, media_names};
use crate::sweep::COMBINE;
use crate::template::TEMPLATES;
use crate::transfers::{ARRIVALS, SIZES};
use dumbbell_cc::NAMES;
use dumbbell_tcp::{Scheduler, Stack};
use serde_json::{Map, Value, json};

const NUMBER: &str = r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?";

/// The JSON Schema (draft 7) of experiment files. What a file may say is decided by the reader; a
/// schema knows each key alone.
pub fn schema() -> Value {
    let mut schema = table(&EXPERIMENT);
    let keys = schema.as_object_mut();
    // A table is an object.
    let keys = keys.expect("an object");
    keys.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    keys.insert("title".to_owned(), json!("Experiment of dumbbell"));
    if let Some(properties) = keys.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("sweep".to_owned(), sweep());
    }
    keys.insert("definitions".to_owned(), sweep_definitions());
    schema
}

fn table(table: &'static Table) -> Value {
    let properties: Map<_, _> =
        table.keys.iter().map(|key| (key.name.to_owned(), described(key))).collect();
    let required: Vec<_> =
        table.keys.iter().filter(|key| is_required(key)).map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn is_required(key: &Key) -> bool {
    key.default == DefaultValue::Required
}

fn described(key: &'static Key) -> Value {
    let mut schema = value(key.kind);
    if let Some(keys) = schema.as_object_mut() {
        keys.insert("description".to_owned(), Value::from(sentence(key.about)));
        if let Some(default) = key.default.value() {
            keys.insert("default".to_owned(), default);
        }
    }
    schema
}

/// The text with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

fn value(kind: Kind) -> Value {
    let list = |items: Value| json!({"type": "array", "items": items});
    let text = || json!({"type": "string"});
    let steps = |second: Value| {
        let pair = json!({
            "type": "array", "items": [quantity(&[&TIME]), second], "minItems": 2, "maxItems": 2,
        });
        json!({"type": "array", "items": pair, "minItems": 1})
    };
    match kind {
        Kind::Text => text(),
        Kind::Name => json!({"type": "string", "minLength": 1}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Count => json!({"type": "integer", "minimum": 1}),
        Kind::Seeds => json!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": MAX_SEEDS},
            {
                "type": "array", "items": {"type": "integer", "minimum": 0},
                "minItems": 1, "maxItems": MAX_SEEDS, "uniqueItems": true,
            },
        ]}),
        Kind::Period | Kind::Time => quantity(&[&TIME]),
        Kind::Rate => quantity(&[&RATE]),
        Kind::Size => quantity(&[&SIZE]),
        Kind::Queue => {
            json!({"anyOf": [{"enum": [UNLIMITED, NO_QUEUE]}, quantity(&QUEUE_DIMENSIONS)]})
        }
        Kind::Rates => steps(quantity(&[&RATE])),
        Kind::AppRates => json!({"anyOf": [text(), steps(quantity(&[&RATE]))]}),
        Kind::Reroutes => steps(quantity(&[&TIME])),
        Kind::Trace => {
            let times = json!({"type": "array", "items": {"type": "integer"}, "minItems": 1});
            json!({"anyOf": [text(), times]})
        }
        Kind::Loss => json!({"anyOf": [
            {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": format!(r"^\s*{NUMBER}\s*%?\s*$")},
            calls(LOSSES),
            steps(json!({"type": ["number", "string"]})),
        ]}),
        Kind::Template => calls(TEMPLATES),
        Kind::Medium => calls(MEDIA),
        Kind::Aqm => json!({"anyOf": [{"enum": [NO_AQM]}, calls(AQMS)]}),
        Kind::Arrivals => {
            let times = json!({"type": "array", "items": quantity(&[&TIME]), "minItems": 1});
            json!({"anyOf": [calls(ARRIVALS), times]})
        }
        Kind::Sizes => json!({"anyOf": [calls(SIZES), {
            "type": "array", "minItems": 1,
            "items": {
                "type": "array", "items": [quantity(&[&SIZE]), {"type": ["number", "string"]}],
                "minItems": 2, "maxItems": 2,
            },
        }]}),
        Kind::App => calls(APPS),
        Kind::Ladder => {
            json!({"type": "array", "items": quantity(&[&RATE]), "minItems": 1, "uniqueItems": true})
        }
        Kind::Reorder => {
            let time = units(&[&TIME]);
            json!({"type": "string", "pattern": format!(r"^\s*{NUMBER}\s*%? by {NUMBER}\s*({time})\s*$")})
        }
        Kind::Algorithm => algorithm(),
        Kind::Dscp => json!({"enum": DSCPS.map(|(name, _)| name)}),
        Kind::Scheduler => json!({"enum": Scheduler::NAMES}),
        Kind::Transport => json!({"enum": TRANSPORTS}),
        Kind::Stack => json!({"enum": Stack::NAMES}),
        Kind::StackOptions => options(STACK_OPTIONS.iter()),
        Kind::FlowStack => json!({"enum": all_stacks()}),
        Kind::TransportOptions => {
            let bulk = BULK_TRANSPORTS.iter().flat_map(|transport| transport.options);
            options(UDT_OPTIONS.iter().chain(QUIC_OPTIONS).chain(RTP_OPTIONS).chain(bulk))
        }
        Kind::Path => list(text()),
        Kind::Paths => json!({"type": "array", "items": list(text()), "maxItems": MAX_PATHS}),
        Kind::Periods => list(quantity(&[&TIME])),
        Kind::Texts => json!({"type": "object", "additionalProperties": text()}),
        Kind::Links => json!({"type": "array", "items": table(&LINK), "minItems": 1}),
        Kind::Flows => json!({"type": "array", "items": table(&FLOW), "minItems": 1}),
    }
}

/// A number with a unit of one of these dimensions.
fn quantity(dimensions: &[&Dimension]) -> Value {
    let units = units(dimensions);
    let examples: Vec<_> = dimensions.iter().map(|dimension| dimension.example).collect();
    let pattern = format!(r"^\s*{NUMBER}\s*({units})\s*$");
    json!({"type": "string", "pattern": pattern, "examples": examples})
}

fn units(dimensions: &[&Dimension]) -> String {
    let units = dimensions.iter().flat_map(|dimension| dimension.spellings());
    units.collect::<Vec<_>>().join("|")
}

/// A name, a name with options, or a table with the same.
fn calls(kinds: &'static [CallKind]) -> Value {
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    let pattern = format!(r"^\s*({})\s*\(.*\)\s*$", names.join("|"));
    let mut schemas = vec![json!({"enum": names}), json!({"type": "string", "pattern": pattern})];
    for kind in kinds {
        let mut properties = Map::new();
        properties
            .insert("name".to_owned(), json!({"enum": [kind.name], "description": kind.about}));
        for option in kind.options {
            let mut schema = option_of_call(option.values);
            schema["description"] = Value::from(sentence(option.about));
            properties.insert(option.name.to_owned(), schema);
        }
        let required: Vec<_> = std::iter::once("name")
            .chain(kind.options.iter().filter(|option| option.default.is_none()).map(|o| o.name))
            .collect();
        schemas.push(json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        }));
    }
    json!({"anyOf": schemas})
}

fn option_of_call(values: Values) -> Value {
    match values {
        Values::Quantity(dimension) => quantity(&[dimension]),
        Values::QuantityOrOff(dimension) => {
            json!({"anyOf": [{"enum": ["off", false]}, quantity(&[dimension])]})
        }
        Values::QuantityOf(dimensions) => quantity(dimensions),
        Values::Number(max) => json!({"type": ["number", "string"], "minimum": 0, "maximum": max}),
        Values::Count(min, max) => {
            json!({"type": ["integer", "string"], "minimum": min, "maximum": max})
        }
        Values::Switch => json!({"enum": [true, false, "on", "off"]}),
        Values::OneOf(names) => {
            let switched = [("on", true), ("off", false)].into_iter();
            let switched = switched.filter(|(name, _)| names.contains(name));
            let names = names.iter().map(|name| Value::from(*name));
            json!({"enum": names.chain(switched.map(|(_, is_on)| json!(is_on))).collect::<Vec<_>>()})
        }
    }
}

fn algorithm() -> Value {
    let names = NAMES.iter().map(|name| name.replace('+', r"\+")).collect::<Vec<_>>().join("|");
    let name = json!({"type": "string"});
    json!({"anyOf": [
        {"enum": NAMES},
        {"enum": [NO_ALGORITHM]},
        {"enum": media_names().collect::<Vec<_>>()},
        {"type": "string", "pattern": format!(r"^\s*({names})\s*(\(.*\))?\s*$")},
        {"type": "string", "pattern": r"^.+:\w+\s*(\(.*\))?$"},
        {"type": "string", "pattern": r"^linux:([A-Za-z0-9_-]{1,15}|.+\.o)$"},
        {"type": "object", "properties": {"name": name}, "required": ["name"]},
    ]})
}

fn options(known: impl Iterator<Item = &'static TransportOption>) -> Value {
    let property = |option: &TransportOption| {
        let mut schema = match option.values {
            OptionValues::Bool => json!({"type": "boolean"}),
            OptionValues::Whole(min, max) => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            OptionValues::Time(_) => quantity(&[&TIME]),
            OptionValues::Rate | OptionValues::RateFrom(..) => quantity(&[&RATE]),
            OptionValues::OneOf(names) => json!({"enum": names}),
        };
        schema["description"] = Value::from(sentence(option.about));
        (option.name.to_owned(), schema)
    };
    let properties: Map<_, _> = known.map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// One `[sweep]` table or several.
fn sweep() -> Value {
    let about = "Axes of `dumbbell sweep`: a key of the experiment, such as \
                 \"link.bottleneck.rate\", and its values, a list or a range \
                 { from = \"10 ms\", to = \"100 ms\", points = 5 }.";
    let axes = json!({"$ref": "#/definitions/axes"});
    let several = json!({"type": "array", "items": axes, "minItems": 1});
    json!({"description": about, "anyOf": [axes, several]})
}

/// The definitions of a `[sweep]` table and of its axes.
fn sweep_definitions() -> Value {
    let mut properties = json!({
        "combine": {
            "enum": COMBINE, "default": COMBINE[0], "description": "How the axes are combined.",
        },
        "points": {
            "type": "integer", "minimum": 1,
            "description": "How many points are drawn, if combine draws points.",
        },
        "seed": {
            "type": "integer", "minimum": 0, "default": 1,
            "description": "The seed from which points are drawn.",
        },
    });
    let is_axis = |key: &&Key| !matches!(key.kind, Kind::Links | Kind::Flows | Kind::Seeds);
    for key in EXPERIMENT.keys.iter().filter(is_axis) {
        properties[key.name] = axis(key);
    }
    let of = |table: &'static Table| {
        let name = table.name;
        table
            .keys
            .iter()
            .map(move |key| (format!(r"^{name}(\..+|\[\d+\])\.{}$", key.name), axis(key)))
    };
    let patterns: Map<_, _> = of(&LINK).chain(of(&FLOW)).collect();
    let any = json!({"$ref": "#/definitions/axis"});
    // Without quotes the parts of a key are tables.
    let nested = json!({"type": "object", "minProperties": 1, "additionalProperties": any});
    json!({
        "axes": {
            "type": "object", "properties": properties, "patternProperties": patterns,
            "additionalProperties": any,
        },
        "axis": {"anyOf": [list(json!({})), list_table(), range(), nested]},
    })
}

/// The axis of a key.
fn axis(key: &'static Key) -> Value {
    // A value that is put into a text is not yet the key's.
    let mut axis = json!({"anyOf": [list(value(key.kind)), list_table(), range()]});
    if matches!(key.kind, Kind::StackOptions | Kind::TransportOptions | Kind::Texts) {
        axis = json!({"$ref": "#/definitions/axis"});
    }
    axis["description"] = Value::from(sentence(key.about));
    axis
}

/// The values of an axis; those of zipped axes may repeat.
fn list(items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1})
}

fn list_table() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"values": list(json!({})), "name": text, "as": text},
        "required": ["values"],
        "additionalProperties": false,
    })
}

fn range() -> Value {
    let (text, end) = (json!({"type": "string"}), json!({"type": ["number", "string"]}));
    json!({
        "type": "object",
        "properties": {
            "from": end, "to": end, "scale": {"enum": SCALES}, "name": text, "as": text,
            "points": {"type": "integer", "minimum": 2, "maximum": MAX_VALUES},
        },
        "required": ["from", "to"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_described() {
        let schema = schema();
        for (pointer, table) in [
            ("", &EXPERIMENT),
            ("/properties/link/items", &LINK),
            ("/properties/flow/items", &FLOW),
        ] {
            for key in table.keys {
                let pointer = format!("{pointer}/properties/{}/description", key.name);
                assert!(schema.pointer(&pointer).is_some_and(Value::is_string), "{pointer}");
            }
        }
        assert_eq!(schema["required"], json!(["duration", "link", "flow"]));
        assert!(schema["properties"]["sweep"].is_object());
    }

    #[test]
    fn quantities_have_patterns_and_names_are_listed() {
        let schema = schema();
        let rate = &schema["properties"]["link"]["items"]["properties"]["rate"];
        assert!(rate["pattern"].as_str().is_some_and(|pattern| pattern.contains("Mbit/s")));
        let cc = &schema["properties"]["flow"]["items"]["properties"]["cc"]["anyOf"];
        assert_eq!(cc[0]["enum"], json!(NAMES));
        let aqm = option_of_call(Values::OneOf(&["off", "on", "aggressive"]));
        assert_eq!(aqm["enum"], json!(["off", "on", "aggressive", true, false]));
    }
}
