//! Flows of many transfers: `arrivals = "poisson(load=0.5)"`, `sizes = "web-search"`.

use crate::call::{Call, CallKind, OptionKind, Resolved, Values};
use crate::quantity::{SIZE, TIME, ValueError, fail, parse_probability, shown};
use dumbbell_sim::{ArrivalProcess, Sizes};
use dumbbell_tcp::Stack;
use serde_json::{Value, json};

const ARRIVALS_ARE: &str = "an arrival process";
const SIZES_ARE: &str = "a distribution of sizes";

const PACE: &[OptionKind] = &[
    OptionKind {
        name: "every",
        default: Some("off"),
        values: Values::QuantityOrOff(&TIME),
        about: "the mean time from one transfer to the next",
    },
    OptionKind {
        name: "load",
        default: Some("0"),
        values: Values::Number(10.0),
        about: "instead of every, the share of the slowest link's rate that the transfers take on \
                average, headers included",
    },
];

/// The processes by which transfers arrive.
pub static ARRIVALS: &[CallKind] = &[
    CallKind {
        name: "poisson",
        about: "transfers that arrive at random, independently",
        options: PACE,
    },
    CallKind { name: "periodic", about: "transfers at a fixed interval", options: PACE },
];

const MEAN: OptionKind = OptionKind {
    name: "mean",
    default: None,
    values: Values::Quantity(&SIZE),
    about: "the mean size",
};

/// The distributions of the sizes of transfers.
pub static SIZES: &[CallKind] = &[
    CallKind {
        name: "constant",
        about: "transfers of one size",
        options: &[OptionKind {
            name: "size",
            default: None,
            values: Values::Quantity(&SIZE),
            about: "the size of each",
        }],
    },
    CallKind { name: "exponential", about: "exponentially distributed sizes", options: &[MEAN] },
    CallKind {
        name: "lognormal",
        about: "lognormally distributed sizes",
        options: &[
            MEAN,
            OptionKind {
                name: "sigma",
                default: Some("1"),
                values: Values::Number(10.0),
                about: "the standard deviation of the natural logarithm of the size",
            },
        ],
    },
    CallKind {
        name: "pareto",
        about: "Pareto distributed sizes, which have a heavy tail",
        options: &[
            MEAN,
            OptionKind {
                name: "shape",
                default: Some("1.2"),
                values: Values::Number(1000.0),
                about: "the tail index, above 1; web files have about 1.2 (Crovella and Bestavros, \
                        IEEE/ACM ToN 5 (6), 1997)",
            },
        ],
    },
    CallKind {
        name: "web-search",
        about: "flows of a cluster that serves web search (Alizadeh et al., \"Data center TCP \
                (DCTCP)\", SIGCOMM 2010), by the points that simulations of datacentres use; the \
                mean is 1.71 MB",
        options: &[],
    },
    CallKind {
        name: "data-mining",
        about: "flows of a cluster for data mining (Greenberg et al., \"VL2\", SIGCOMM 2009), by \
                the points that simulations of datacentres use; the mean is 12.7 MB, half of the \
                flows have at most 1100 bytes",
        options: &[],
    },
];

/// Bytes and the share of flows that are no larger: `conf/DCTCP_CDF.txt` of HKUST-SING's
/// TrafficGenerator, as in pFabric and its successors.
const WEB_SEARCH: [(u64, f64); 11] = [
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];

/// The same of VL2: `conf/VL2_CDF.txt`.
const DATA_MINING: [(u64, f64); 12] = [
    (180, 0.1),
    (216, 0.2),
    (560, 0.3),
    (900, 0.4),
    (1_100, 0.5),
    (1_870, 0.6),
    (3_160, 0.7),
    (10_000, 0.8),
    (400_000, 0.9),
    (3_160_000, 0.95),
    (100_000_000, 0.98),
    (1_000_000_000, 1.0),
];

/// When transfers arrive, as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArrivalTimes {
    /// By this process, one every so many ns on average.
    Every(&'static str, u64),
    /// By this process, as many as take this share of the slowest link.
    Load(&'static str, f64),
    /// At these times after the start of the flow, ns.
    Times(Vec<u64>),
}

impl ArrivalTimes {
    /// Reads a process, or a list of times in order.
    ///
    /// # Errors
    /// If it is neither, or a process has not one of `every` and `load`.
    pub(crate) fn parse(value: &Value) -> Result<ArrivalTimes, ValueError> {
        if let Value::Array(items) = value {
            let times: Vec<u64> =
                items.iter().map(|time| TIME.parse_or_zero(time)).collect::<Result<_, _>>()?;
            if times.is_empty() || !times.is_sorted() {
                fail!("{} are not times in order, such as [\"0 s\", \"1.5 s\"]", shown(value))
            }
            return Ok(ArrivalTimes::Times(times));
        }
        let process = Call::from_value(value, ARRIVALS_ARE)?.resolve(ARRIVALS, ARRIVALS_ARE)?;
        let (name, load) = (process.kind.name, process.number("load"));
        match process.amount("every") {
            Some(every) if load == 0.0 => Ok(ArrivalTimes::Every(name, every)),
            None if load > 0.0 => Ok(ArrivalTimes::Load(name, load)),
            _ => fail!("{name} takes one of every and load; write \"{name}(load=0.5)\", say"),
        }
    }

    /// The arrivals as a file has them.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            ArrivalTimes::Every(name, every) => {
                json!(format!("{name}(every={})", TIME.format(*every)))
            }
            ArrivalTimes::Load(name, load) => json!(format!("{name}(load={load})")),
            ArrivalTimes::Times(times) => times.iter().map(|time| TIME.format(*time)).collect(),
        }
    }

    /// The same with a time in place of a load; `None` without the rate of the slowest link.
    /// Transfers have `bytes` on average, headers included.
    pub(crate) fn with_rate(self, bytes: f64, rate: Option<u64>) -> Option<ArrivalTimes> {
        let ArrivalTimes::Load(name, load) = self else { return Some(self) };
        let every = bytes * 8e9 / (load * rate? as f64);
        Some(ArrivalTimes::Every(name, (every as u64).clamp(1, TIME.max)))
    }

    /// What the simulator takes.
    ///
    /// # Panics
    /// If it is a load.
    pub(crate) fn model(self) -> ArrivalProcess {
        match self {
            ArrivalTimes::Every("poisson", every) => ArrivalProcess::Poisson(every),
            ArrivalTimes::Every(_, every) => ArrivalProcess::Periodic(every),
            ArrivalTimes::Times(times) => ArrivalProcess::Times(times),
            ArrivalTimes::Load(..) => unreachable!("resolved arrivals"),
        }
    }
}

/// The sizes of transfers, as written.
#[derive(Clone, Debug)]
pub(crate) enum TransferSizes {
    /// A distribution of [`SIZES`].
    Named(Resolved),
    /// Points of a distribution: bytes, and the share of transfers that are no larger.
    Points(Vec<(u64, f64)>),
}

impl TransferSizes {
    /// Reads a distribution, or a list of points.
    ///
    /// # Errors
    /// If it is neither, or the points do not rise to a share of 1.
    pub(crate) fn parse(value: &Value) -> Result<TransferSizes, ValueError> {
        if let Value::Array(items) = value {
            return points(items).map(TransferSizes::Points);
        }
        let sizes = Call::from_value(value, SIZES_ARE)?.resolve(SIZES, SIZES_ARE)?;
        if sizes.kind.name == "pareto" && sizes.number("shape") <= 1.0 {
            fail!("pareto: shape: a distribution with a mean has a shape above 1")
        }
        Ok(TransferSizes::Named(sizes))
    }

    /// The sizes as a file has them.
    pub(crate) fn to_value(&self) -> Value {
        let point = |(bytes, share): &(u64, f64)| json!([SIZE.format(*bytes), share]);
        match self {
            TransferSizes::Named(sizes) if sizes.kind.options.is_empty() => json!(sizes.kind.name),
            TransferSizes::Named(sizes) => json!(sizes.to_string()),
            TransferSizes::Points(points) => points.iter().map(point).collect(),
        }
    }

    /// The mean size with headers, bytes.
    pub(crate) fn with_headers(&self, stack: &Stack) -> f64 {
        let mss = f64::from(stack.mss);
        self.model().mean() * (mss + f64::from(stack.header)) / mss
    }

    /// What the simulator takes.
    pub(crate) fn model(&self) -> Sizes {
        let sizes = match self {
            TransferSizes::Points(points) => return Sizes::Points(points.clone()),
            TransferSizes::Named(sizes) => sizes,
        };
        match sizes.kind.name {
            "constant" => Sizes::Constant(sizes.whole("size")),
            "exponential" => Sizes::Exponential(sizes.whole("mean")),
            "lognormal" => Sizes::Lognormal(sizes.whole("mean"), sizes.number("sigma")),
            "pareto" => Sizes::Pareto(sizes.whole("mean"), sizes.number("shape")),
            "web-search" => Sizes::Points(WEB_SEARCH.to_vec()),
            _ => Sizes::Points(DATA_MINING.to_vec()),
        }
    }
}

fn points(items: &[Value]) -> Result<Vec<(u64, f64)>, ValueError> {
    let read = |item: &Value| match item.as_array().map(Vec::as_slice) {
        Some([size, share]) => {
            let share = if share.as_f64() == Some(1.0) { 1.0 } else { parse_probability(share)? };
            Ok((SIZE.parse(size)?, share))
        }
        _ => fail!("{} is not a size and a share, such as [\"10 kB\", 0.5]", shown(item)),
    };
    let points: Vec<(u64, f64)> = items.iter().map(read).collect::<Result<_, _>>()?;
    let rises = |pair: &[(u64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
    if points.last().is_none_or(|last| last.1 != 1.0) || !points.windows(2).all(rises) {
        let all = shown(&Value::from(items));
        fail!(
            "{all} are not points that rise to a share of 1, such as [[\"10 kB\", 0.5], [\"1 MB\", 1]]"
        )
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(value: Value) -> Result<ArrivalTimes, String> {
        ArrivalTimes::parse(&value).map_err(|error| error.to_string())
    }

    #[test]
    fn arrivals_are_a_process_or_a_list_of_times() {
        let every = arrivals(json!("poisson(every=20 ms)")).expect("valid");
        assert_eq!(every.to_value(), json!("poisson(every=20 ms)"));
        let times = arrivals(json!(["0 s", "1.5 s"])).expect("valid");
        assert_eq!(times.model(), ArrivalProcess::Times(vec![0, 1_500_000_000]));
        for (wrong, part) in [
            (json!("poisson"), "takes one of every and load"),
            (json!("poisson(every=1 s, load=0.5)"), "takes one of every and load"),
            (json!(["2 s", "1 s"]), "not times in order"),
            (json!("posson(load=1)"), "did you mean \"poisson\"?"),
        ] {
            let error = arrivals(wrong).expect_err("not valid");
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_load_is_a_share_of_the_rate() {
        let half = arrivals(json!("periodic(load=0.5)")).expect("valid");
        assert_eq!(half.clone().with_rate(1e6, None), None);
        // 1 MB every 160 ms is half of 100 Mbit/s.
        let every = half.with_rate(1e6, Some(100_000_000)).expect("a rate");
        assert_eq!(every.model(), ArrivalProcess::Periodic(160_000_000));
    }

    #[test]
    fn sizes_are_a_distribution_or_its_points() {
        let parse = |value| TransferSizes::parse(&value).map_err(|error| error.to_string());
        for value in [json!("web-search"), json!("lognormal(mean=10 kB, sigma=2.0)")] {
            assert_eq!(parse(value.clone()).expect("valid").to_value(), value);
        }
        let points = parse(json!([["10 kB", "50 %"], ["1 MB", 1]])).expect("valid");
        assert_eq!(points.model(), Sizes::Points(vec![(10_000, 0.5), (1_000_000, 1.0)]));
        for (wrong, part) in [
            (json!("pareto(mean=10 kB, shape=1)"), "a shape above 1"),
            (json!([["10 kB", 0.5]]), "rise to a share of 1"),
            (json!([["10 kB"]]), "is not a size and a share"),
            (json!("exponential"), "lacks its option mean"),
        ] {
            let error = parse(wrong).expect_err("not valid");
            assert!(error.contains(part), "{error}");
        }
    }

    /// By hand from the published points; pFabric (SIGCOMM 2013) says 1.6 MB of web search.
    #[test]
    fn the_named_distributions_have_the_means_that_their_texts_give() {
        for (name, mean) in [("web-search", 1.71e6), ("data-mining", 12.7e6)] {
            let sizes = TransferSizes::parse(&json!(name)).expect("valid").model();
            assert!((sizes.mean() / mean - 1.0).abs() < 0.01, "{name}: {}", sizes.mean());
        }
    }
}
