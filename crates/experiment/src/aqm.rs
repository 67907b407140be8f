//! Active queue management, as links have it: `codel`, `fq_codel(target=5 ms, ecn=off)`.

use crate::call::{Call, CallKind, OptionKind, Resolved, Values};
use crate::quantity::{PACKETS, SIZE, TIME, ValueError, fail};
use dumbbell_net::{
    AckFilter, AqmConfig, CakeConfig, CakeHosts, CakeTins, CodelConfig, DualPi2Config,
    FqCodelConfig, FqPieConfig, PieConfig, RedConfig, RedUnit, StepConfig, StepThreshold,
};
use dumbbell_units::Span;
use serde_json::Value;

const WHAT: &str = "an active queue management";

/// The value of `aqm` for tail drop, as without the key: for an axis of a sweep.
pub(crate) const NO_AQM: &str = "none";
/// The minimum of the update intervals of PIE and DualPI2, ns.
const MIN_UPDATE: u64 = 100_000;

const fn option(
    name: &'static str,
    default: &'static str,
    values: Values,
    about: &'static str,
) -> OptionKind {
    OptionKind { name, default: Some(default), values, about }
}

const TARGET: OptionKind =
    option("target", "5 ms", Values::Quantity(&TIME), "acceptable standing queueing delay");
const INTERVAL: OptionKind = option(
    "interval",
    "100 ms",
    Values::Quantity(&TIME),
    "for how long the delay exceeds the target before a drop: about the longest RTT",
);
const ECN: OptionKind =
    option("ecn", "on", Values::Switch, "whether ECN-capable packets are marked, not dropped");
const CE_THRESHOLD: OptionKind = option(
    "ce_threshold",
    "off",
    Values::QuantityOrOff(&TIME),
    "queueing delay above which every ECN-capable packet is marked",
);

const PIE_TARGET: OptionKind =
    option("target", "15 ms", Values::Quantity(&TIME), "target queueing delay");
const PIE_UPDATE: OptionKind =
    option("update", "15 ms", Values::Quantity(&TIME), "interval of its updates");
const PIE_BURST: OptionKind =
    option("burst", "150 ms", Values::Quantity(&TIME), "burst that passes without drops");
const PIE_ALPHA: OptionKind =
    option("alpha", "0.125", Values::Number(1000.0), "weight of the delay, 1/s");
const PIE_BETA: OptionKind =
    option("beta", "1.25", Values::Number(1000.0), "weight of the delay's trend, 1/s");
const PIE_ECN_LIMIT: OptionKind = option(
    "ecn_limit",
    "0.1",
    Values::Number(1.0),
    "drop probability above which ECN-capable packets are dropped too",
);
const QUANTUM: OptionKind =
    option("quantum", "1500 B", Values::Quantity(&SIZE), "bytes per queue and round");
const QUEUES: OptionKind =
    option("queues", "1024", Values::Count(1, 65_536), "the number of queues");

/// The active queue managements that links can have.
pub static AQMS: &[CallKind] = &[
    CallKind {
        name: "cake",
        about: "CAKE's queues, as in Linux: COBALT in one queue per flow, hosts, DiffServ's tins, ACK filter",
        options: &[
            TARGET,
            INTERVAL,
            ECN,
            QUEUES,
            option(
                "hosts",
                "triple-isolate",
                Values::OneOf(&["flows", "dual-srchost", "dual-dsthost", "triple-isolate"]),
                "between what the rate is shared: flows alone, or hosts and then the flows of each",
            ),
            option(
                "tins",
                "diffserv3",
                Values::OneOf(&["besteffort", "diffserv3", "diffserv4"]),
                "the classes of traffic by the flows' dscp",
            ),
            option(
                "ack_filter",
                "off",
                Values::OneOf(&["off", "on", "aggressive"]),
                "whether redundant TCP acknowledgements are dropped; at least two stay if on, one if aggressive",
            ),
        ],
    },
    CallKind {
        name: "codel",
        about: "Controlled Delay (RFC 8289)",
        options: &[TARGET, INTERVAL, ECN, CE_THRESHOLD],
    },
    CallKind {
        name: "dualpi2",
        about: "Dual-Queue Coupled AQM for L4S (RFC 9332), as in Linux",
        options: &[
            option("target", "15 ms", Values::Quantity(&TIME), "target queueing delay"),
            option("tupdate", "16 ms", Values::Quantity(&TIME), "interval of its updates"),
            option("alpha", "0.16", Values::Number(1000.0), "weight of the delay, 1/s"),
            option("beta", "3.2", Values::Number(1000.0), "weight of the delay's trend, 1/s"),
            option(
                "coupling_factor",
                "2.0",
                Values::Number(100.0),
                "marking probability of L4S packets over the base probability (k)",
            ),
            option(
                "step_thresh",
                "1 ms",
                Values::Quantity(&TIME),
                "queueing delay above which every L4S packet is marked",
            ),
            option(
                "min_qlen_step",
                "0",
                Values::Count(0, 1_000_000),
                "L4S packets queued, below which an arriving one is exempt from step_thresh",
            ),
            option(
                "classic_protection",
                "0.1",
                Values::Number(1.0),
                "share of the rate that the Classic queue gets at least",
            ),
            option(
                "drop_on_overload",
                "on",
                Values::Switch,
                "whether L4S packets are dropped when marks do not suffice",
            ),
        ],
    },
    CallKind {
        name: "fq_codel",
        about: "CoDel in one queue per flow (RFC 8290)",
        options: &[TARGET, INTERVAL, ECN, CE_THRESHOLD, QUANTUM, QUEUES],
    },
    CallKind {
        name: "fq_pie",
        about: "PIE in one queue per flow, as in Linux",
        options: &[
            PIE_TARGET,
            PIE_UPDATE,
            PIE_BURST,
            PIE_ALPHA,
            PIE_BETA,
            ECN,
            PIE_ECN_LIMIT,
            QUANTUM,
            QUEUES,
        ],
    },
    CallKind {
        name: "pie",
        about: "Proportional Integral controller Enhanced (RFC 8033)",
        options: &[PIE_TARGET, PIE_UPDATE, PIE_BURST, PIE_ALPHA, PIE_BETA, ECN, PIE_ECN_LIMIT],
    },
    CallKind {
        name: "red",
        about: "Random Early Detection (Floyd and Jacobson, 1993)",
        options: &[
            option(
                "min",
                "5 packets",
                Values::QuantityOf(&[&PACKETS, &SIZE]),
                "average queue with the first drops; the default suits slow links",
            ),
            option(
                "max",
                "15 packets",
                Values::QuantityOf(&[&PACKETS, &SIZE]),
                "average queue with max_p drops",
            ),
            option("probability", "0.1", Values::Number(1.0), "drop probability at max (max_p)"),
            option("weight", "0.002", Values::Number(1.0), "weight of the average (w_q)"),
            option("gentle", "on", Values::Switch, "whether the probability rises up to 2 max"),
            ECN,
            option(
                "hard_drop",
                "on",
                Values::Switch,
                "whether ECN-capable packets are dropped above max",
            ),
        ],
    },
    CallKind {
        name: "step",
        about: "marks every ECN-capable packet above a threshold (RFC 8257, section 3.1)",
        options: &[option(
            "threshold",
            "1 ms",
            Values::QuantityOf(&[&PACKETS, &SIZE, &TIME]),
            "queue above which packets are marked: packets or bytes behind them, or their delay",
        )],
    },
];

/// Checks an active queue management, a text or a table; returns it with all options.
///
/// # Errors
/// If there is none of that name, or an option of it is not valid.
pub fn resolve(value: &Value) -> Result<Resolved, ValueError> {
    let aqm = Call::from_value(value, WHAT)?.resolve(AQMS, WHAT)?;
    match aqm.kind.name {
        name @ ("pie" | "fq_pie") if aqm.whole("update") < MIN_UPDATE => {
            fail!("{name}: update: less than {}; write more", TIME.format(MIN_UPDATE))
        }
        "dualpi2" if aqm.whole("tupdate") < MIN_UPDATE => {
            fail!("dualpi2: tupdate: less than {}; write more", TIME.format(MIN_UPDATE))
        }
        "red" if aqm.dimension("min") != aqm.dimension("max") => {
            let advice = "such as \"red(min=30 kB, max=90 kB)\"";
            fail!("red: min and max are to be both in packets or both in bytes, {advice}")
        }
        "red" if aqm.whole("min") > aqm.whole("max") => {
            fail!("red: min is more than max; write at most as much")
        }
        "red" if aqm.number("weight") == 0.0 => {
            fail!("red: weight: 0 is nothing; write more than that, such as 0.002")
        }
        _ => Ok(aqm),
    }
}

/// The configuration of an active queue management.
pub fn config(aqm: &Resolved) -> AqmConfig {
    let span = |option| Span::from_nanos(aqm.whole(option));
    let codel = || CodelConfig {
        target: span("target"),
        interval: span("interval"),
        ecn: aqm.is_on("ecn"),
        ce_threshold: aqm.amount("ce_threshold").map(Span::from_nanos),
    };
    match aqm.kind.name {
        "codel" => AqmConfig::Codel(codel()),
        "fq_codel" => AqmConfig::FqCodel(FqCodelConfig {
            codel: codel(),
            quantum: u32::try_from(aqm.whole("quantum")).unwrap_or(u32::MAX),
            queues: u32::try_from(aqm.whole("queues")).unwrap_or(u32::MAX),
        }),
        "cake" => AqmConfig::Cake(CakeConfig {
            target: span("target"),
            interval: span("interval"),
            ecn: aqm.is_on("ecn"),
            queues: u32::try_from(aqm.whole("queues")).unwrap_or(u32::MAX),
            // In the order of the names.
            hosts: [
                CakeHosts::Flows,
                CakeHosts::DualSrchost,
                CakeHosts::DualDsthost,
                CakeHosts::TripleIsolate,
            ][aqm.place("hosts")],
            tins: [CakeTins::Besteffort, CakeTins::Diffserv3, CakeTins::Diffserv4]
                [aqm.place("tins")],
            ack_filter: [AckFilter::Off, AckFilter::On, AckFilter::Aggressive]
                [aqm.place("ack_filter")],
        }),
        "pie" => AqmConfig::Pie(pie(aqm)),
        "fq_pie" => AqmConfig::FqPie(FqPieConfig {
            pie: pie(aqm),
            quantum: u32::try_from(aqm.whole("quantum")).unwrap_or(u32::MAX),
            queues: u32::try_from(aqm.whole("queues")).unwrap_or(u32::MAX),
        }),
        "red" => AqmConfig::Red(RedConfig {
            unit: match aqm.dimension("min") == Some(&PACKETS) {
                true => RedUnit::Packets,
                false => RedUnit::Bytes,
            },
            min: aqm.whole("min") as f64,
            max: aqm.whole("max") as f64,
            probability: aqm.number("probability"),
            weight: aqm.number("weight"),
            gentle: aqm.is_on("gentle"),
            ecn: aqm.is_on("ecn"),
            hard_drop: aqm.is_on("hard_drop"),
        }),
        "dualpi2" => AqmConfig::DualPi2(DualPi2Config {
            target: span("target"),
            tupdate: span("tupdate"),
            alpha: aqm.number("alpha"),
            beta: aqm.number("beta"),
            coupling_factor: aqm.number("coupling_factor"),
            step_thresh: span("step_thresh"),
            min_qlen_step: u32::try_from(aqm.whole("min_qlen_step")).unwrap_or(u32::MAX),
            classic_protection: aqm.number("classic_protection"),
            drop_on_overload: aqm.is_on("drop_on_overload"),
        }),
        "step" => AqmConfig::Step(StepConfig { threshold: step_threshold(aqm) }),
        name => unreachable!("{name} is in the table of active queue managements"),
    }
}

fn pie(aqm: &Resolved) -> PieConfig {
    let span = |key| Span::from_nanos(aqm.whole(key));
    PieConfig {
        target: span("target"),
        update: span("update"),
        burst: span("burst"),
        alpha: aqm.number("alpha"),
        beta: aqm.number("beta"),
        ecn: aqm.is_on("ecn"),
        ecn_limit: aqm.number("ecn_limit"),
    }
}

fn step_threshold(aqm: &Resolved) -> StepThreshold {
    let amount = aqm.whole("threshold");
    match aqm.dimension("threshold") {
        dimension if dimension == Some(&PACKETS) => {
            StepThreshold::Packets(u32::try_from(amount).unwrap_or(u32::MAX))
        }
        dimension if dimension == Some(&SIZE) => StepThreshold::Bytes(amount),
        _ => StepThreshold::Ns(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolved(value: Value) -> Resolved {
        resolve(&value).expect("a valid AQM")
    }

    #[test]
    fn a_name_alone_has_the_defaults_of_the_link_model() {
        let config = |name: &str| config(&resolved(json!(name)));
        assert_eq!(config("codel"), AqmConfig::Codel(CodelConfig::default()));
        assert_eq!(config("fq_codel"), AqmConfig::FqCodel(FqCodelConfig::default()));
        assert_eq!(config("cake"), AqmConfig::Cake(CakeConfig::default()));
        assert_eq!(config("pie"), AqmConfig::Pie(PieConfig::default()));
        assert_eq!(config("fq_pie"), AqmConfig::FqPie(FqPieConfig::default()));
        assert_eq!(config("red"), AqmConfig::Red(RedConfig::default()));
        assert_eq!(config("dualpi2"), AqmConfig::DualPi2(DualPi2Config::default()));
        assert_eq!(config("step"), AqmConfig::Step(StepConfig::default()));
    }

    #[test]
    fn every_option_is_written_out_and_read_again() {
        let text = "codel(target=1 ms, interval=100 ms, ecn=off, ce_threshold=2.5 ms)";
        let aqm = resolved(json!("codel(ce_threshold=2500 us, ecn=false, target=0.001 s)"));
        assert_eq!(aqm.to_string(), text);
        assert_eq!(config(&resolved(json!(text))), config(&aqm));
        for kind in AQMS {
            let aqm = resolved(json!(kind.name));
            assert_eq!(config(&resolved(json!(aqm.to_string()))), config(&aqm));
        }
    }

    #[test]
    fn cake_has_hosts_tins_and_an_ack_filter() {
        let AqmConfig::Cake(cake) = config(&resolved(json!({
            "name": "cake", "hosts": "dual-dsthost", "tins": "diffserv4", "ack_filter": true,
        }))) else {
            panic!("CAKE is expected")
        };
        assert_eq!(cake.hosts, CakeHosts::DualDsthost);
        assert_eq!((cake.tins, cake.ack_filter), (CakeTins::Diffserv4, AckFilter::On));
    }

    #[test]
    fn red_takes_its_thresholds_in_bytes_too() {
        let aqm = resolved(json!({"name": "red", "min": "30 kB", "max": "90 kB"}));
        let AqmConfig::Red(red) = config(&aqm) else { panic!("RED is expected") };
        assert_eq!((red.unit, red.min, red.max), (RedUnit::Bytes, 30e3, 90e3));
    }

    #[test]
    fn a_step_takes_packets_bytes_or_a_time() {
        let threshold = |text: &str| match config(&resolved(json!(text))) {
            AqmConfig::Step(step) => step.threshold,
            other => panic!("a step is expected, not {other:?}"),
        };
        assert_eq!(threshold("step(threshold=20 packets)"), StepThreshold::Packets(20));
        assert_eq!(threshold("step(threshold=30 kB)"), StepThreshold::Bytes(30_000));
        assert_eq!(threshold("step(threshold=800 us)"), StepThreshold::Ns(800_000));
    }

    #[test]
    fn errors_say_what_is_valid() {
        for (text, part) in [
            ("codell", "(did you mean \"codel\"?); write NAME or NAME(option=value, ...)"),
            ("codel(tarket=5 ms)", "codel has no option \"tarket\" (did you mean \"target\"?)"),
            ("codel(target=5)", "codel: target: \"5\" lacks a unit"),
            ("codel(ecn=yes)", "codel: ecn: \"yes\" is not a switch; write on or off"),
            ("fq_codel(queues=0)", "queues: \"0\" is not a whole number from 1 to 65,536"),
            ("pie(update=1 us)", "pie: update: less than 100 us"),
            ("fq_pie(update=1 ns)", "fq_pie: update: less than 100 us"),
            ("red(min=5 kB)", "both in packets or both in bytes"),
            ("red(min=50 packets)", "min is more than max"),
            ("red(weight=0)", "weight: 0 is nothing"),
            (
                "cake(hosts=triple-isolated)",
                "(did you mean \"triple-isolate\"?); write flows, dual-srchost",
            ),
            ("dualpi2(tupdate=1 us)", "dualpi2: tupdate: less than 100 us"),
            ("dualpi2(coupling=2)", "dualpi2 has no option \"coupling\""),
            ("step(threshold=5)", "step: threshold: \"5\" lacks a unit"),
        ] {
            let error = resolve(&json!(text)).expect_err("not valid").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
