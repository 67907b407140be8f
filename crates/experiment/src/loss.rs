//! Losses and reordering: probabilities, `gilbert-elliott(p=1e-4, r=0.3)`, `1 % by 10 ms`.

use crate::call::{Call, CallKind, OptionKind, Resolved, Values, format_number};
use crate::quantity::{TIME, ValueError, fail, parse_probability, shown};
use crate::timeline;
use dumbbell_net::{GilbertElliott, LossModel, Reordering};
use dumbbell_units::Span;
use serde_json::Value;
use std::fmt::{self, Display};

const WHAT: &str = "a loss process";

/// The loss processes other than independent losses.
pub static LOSSES: &[CallKind] = &[
    CallKind {
        name: "gilbert-elliott",
        about: "losses in bursts: a channel with a good and a bad state (Gilbert 1960, Elliott 1963)",
        options: &[
            probability("p", None, "probability per packet that a good channel becomes bad"),
            probability("r", None, "probability per packet that a bad channel becomes good"),
            probability("bad", Some("1"), "loss probability in the bad state"),
            probability("good", Some("0"), "loss probability in the good state"),
        ],
    },
    CallKind {
        name: "periodic",
        about: "one loss every so many packets",
        options: &[OptionKind {
            name: "every",
            default: None,
            values: Values::Count(1, 1_000_000_000_000_000_000),
            about: "packets from one loss to the next",
        }],
    },
];

const fn probability(
    name: &'static str,
    default: Option<&'static str>,
    about: &'static str,
) -> OptionKind {
    OptionKind { name, default, values: Values::Number(1.0), about }
}

/// The losses of a link.
#[derive(Clone, Debug)]
pub enum Loss {
    /// Independent ones with this probability.
    Random(f64),
    /// Those of a process of [`LOSSES`].
    Process(Resolved),
    /// Independent ones with probabilities that change: a time in ns, and the probability from then on.
    Steps(Vec<(u64, f64)>),
}

impl Loss {
    /// Reads a probability, a loss process as text or table, or a schedule of probabilities.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn parse(value: &Value) -> Result<Loss, ValueError> {
        if value.is_array() {
            return timeline::parse_probabilities(value).map(Loss::Steps);
        }
        let is_call = match value {
            Value::String(text) => {
                text.contains('(') || LOSSES.iter().any(|kind| kind.name == text.trim())
            }
            Value::Object(_) => true,
            _ => false,
        };
        if is_call {
            return Call::from_value(value, WHAT)?.resolve(LOSSES, WHAT).map(Loss::Process);
        }
        match parse_probability(value) {
            Ok(probability) => Ok(Loss::Random(probability)),
            Err(error) => fail!("{error}, or \"gilbert-elliott(p=1e-4, r=0.3)\""),
        }
    }

    /// Whether packets are ever lost.
    pub fn is_lossy(&self) -> bool {
        match self {
            Loss::Random(probability) => *probability > 0.0,
            Loss::Process(_) => true,
            Loss::Steps(steps) => steps.iter().any(|step| step.1 > 0.0),
        }
    }

    /// The share of packets that are lost in the long run.
    pub fn mean(&self) -> f64 {
        match (self, self.model()) {
            (Loss::Steps(steps), _) => steps.last().map_or(0.0, |step| step.1),
            (_, (probability, None)) => probability,
            (_, (_, Some(LossModel::Periodic(every)))) => 1.0 / every as f64,
            (_, (_, Some(LossModel::GilbertElliott(channel)))) => channel.mean(),
        }
    }

    /// The probability of independent losses, and another model instead of them.
    pub fn model(&self) -> (f64, Option<LossModel>) {
        match self {
            Loss::Random(probability) => (*probability, None),
            Loss::Steps(_) => (0.0, None),
            Loss::Process(process) if process.kind.name == "periodic" => {
                (0.0, Some(LossModel::Periodic(process.whole("every"))))
            }
            Loss::Process(process) => {
                let [p, r, bad, good] = ["p", "r", "bad", "good"].map(|key| process.number(key));
                (0.0, Some(LossModel::GilbertElliott(GilbertElliott { p, r, bad, good })))
            }
        }
    }

    /// The probabilities that change.
    pub fn steps(&self) -> &[(u64, f64)] {
        match self {
            Loss::Steps(steps) => steps,
            _ => &[],
        }
    }

    /// The losses as a file has them: a number, a text or a list.
    pub fn to_value(&self) -> Value {
        match self {
            Loss::Random(probability) => Value::from(*probability),
            Loss::Process(process) => Value::from(process.to_string()),
            Loss::Steps(steps) => timeline::format_probabilities(steps),
        }
    }
}

/// A share of packets that others overtake, as written: `1 % by 10 ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder(pub Reordering);

impl Reorder {
    /// Reads a share and an extra delay.
    ///
    /// # Errors
    /// If the value is not a probability and a time.
    pub fn parse(value: &Value) -> Result<Reorder, ValueError> {
        let Some((share, delay)) = value.as_str().and_then(|text| text.split_once(" by ")) else {
            fail!("{} is not a reordering; write it like \"1 % by 10 ms\"", shown(value))
        };
        let share = parse_probability(&Value::from(share))?;
        let delay = Span::from_nanos(TIME.parse(&Value::from(delay))?);
        Ok(Reorder(Reordering { share, delay }))
    }
}

impl Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reorder(Reordering { share, delay }) = self;
        write!(f, "{} by {}", format_number(*share), TIME.format(delay.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn loss(value: Value) -> Loss {
        Loss::parse(&value).expect("valid losses")
    }

    #[test]
    fn independent_losses_are_a_probability() {
        assert_eq!(loss(json!("0.01 %")).model(), (1e-4, None));
        assert_eq!(loss(json!(0.25)).to_value(), json!(0.25));
        assert!(!loss(json!(0)).is_lossy());
    }

    #[test]
    fn losses_in_bursts_are_a_call() {
        let bursts = loss(json!("gilbert-elliott(p=1e-5, r=0.3)"));
        assert_eq!(bursts.to_value(), json!("gilbert-elliott(p=1e-05, r=0.3, bad=1.0, good=0.0)"));
        let table = json!({"name": "gilbert-elliott", "p": 1e-5, "r": 0.3});
        assert_eq!(loss(table).model(), bursts.model());
        let periodic = loss(json!("periodic(every=100)"));
        assert_eq!(periodic.model(), (0.0, Some(LossModel::Periodic(100))));
    }

    #[test]
    fn errors_say_what_is_valid() {
        for (value, part) in [
            (json!(1.5), "1.5 is not from 0 to less than 1"),
            (json!("gilbert-elliott(r=0.3)"), "gilbert-elliott lacks its option p"),
            (json!("gilbert-elliott(p=2, r=0.3)"), "p: \"2\" is out of range; write a number"),
            (json!("gilbert(p=2)"), "where NAME is one of gilbert-elliott, periodic"),
            (json!("periodic"), "periodic lacks its option every"),
            (json!(null), "null is not a probability"),
        ] {
            let error = Loss::parse(&value).expect_err("not valid").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_reordering_is_a_share_and_a_time() {
        let reorder = Reorder::parse(&json!("1 % by 10 ms")).expect("valid");
        assert_eq!(reorder.0.share, 0.01);
        assert_eq!(reorder.to_string(), "0.01 by 10 ms");
        for wrong in ["1 %", "2 by 10 ms", "1 % by 0 ms", "1 % by ten"] {
            assert!(Reorder::parse(&json!(wrong)).is_err(), "{wrong}");
        }
    }
}
