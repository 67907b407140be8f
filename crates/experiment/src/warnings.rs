//! What a reader of a valid experiment should know: settings that are unusual or without effect, and runs that differ.

use crate::aqm;
use crate::diagnostic::key_path;
use crate::loss::Loss;
use crate::model::{Experiment, Flow, Link};
use crate::quantity::{RATE, TIME, UNLIMITED};
use crate::resolve::checked;
use crate::transfers::{ArrivalTimes, TransferSizes};
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::AqmConfig;
use dumbbell_tcp::{Ecn, Stack};
use dumbbell_units::Time;
use serde_json::Value;

/// What an algorithm lacks without ECN, without an AQM, and with one that does not mark.
macro_rules! lacking {
    ($cc:literal, $ecn:literal, $marks:literal) => {
        [
            concat!(
                "without accurate ECN ",
                $cc,
                " does not learn which share of its packets is marked; write ecn = \"",
                $ecn,
                "\" in [stack_options], and a queue that marks"
            ),
            concat!(
                "no link on the path of ",
                $cc,
                " has an aqm, so no packet is marked and ",
                $cc,
                " reacts to losses only, as Reno does; write an aqm that marks, such as aqm = \"",
                $marks,
                "\""
            ),
            concat!(
                "the aqm on the path of ",
                $cc,
                " has ecn=off, so no packet is marked and ",
                $cc,
                " reacts to losses only, as Reno does; write ecn=on"
            ),
        ]
    };
}

static DCTCP: [&str; 3] = lacking!("dctcp", "accurate", "codel(ce_threshold=1 ms)");
static PRAGUE: [&str; 3] = lacking!("prague", "l4s", "dualpi2");

/// `Bbr3Config` of noq-proto 1.4.0 has no public way to set `probe_rng_seed`.
static UNSEEDED: &str = "noq:bbr3 draws the times of its probes from the system's random numbers and \
                         takes no seed, so runs with the same seed differ";

/// `cake_reconfigure` sets the limit to 4 MiB at least.
static LIMITED_CAKE: &str = "cake drops at random after its queue was full (BLUE), and that does not end while a \
                             flow is alone on the link; leave out the link's queue: the limit of Linux's cake \
                             is 4 MiB at least";

impl Experiment {
    /// Sentences on links with many losses or more transfers than they carry, on flows that ignore marks and, if the
    /// experiment is simulated, on settings that have no effect or an unusual one and on runs that the seed does not
    /// determine.
    ///
    /// # Panics
    /// As [`resolve`](Experiment::resolve).
    pub fn warnings(&self, is_simulated: bool) -> Vec<String> {
        let mut found = Vec::new();
        if is_simulated {
            let mut lacking: Vec<_> =
                self.flows.iter().filter_map(|flow| self.lacks(flow)).collect();
            if self.links.iter().any(limits_cake) {
                lacking.push(LIMITED_CAKE);
            }
            let all = DCTCP.into_iter().chain(PRAGUE).chain([UNSEEDED, LIMITED_CAKE]);
            found.extend(all.filter(|warning| lacking.contains(warning)).map(str::to_owned));
        }
        found.extend(self.links.iter().filter_map(loses_much));
        found.extend(self.links.iter().filter_map(|link| self.is_overloaded(link)));
        for warning in self.flows.iter().filter_map(|flow| self.misuses_ecn(flow)) {
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
        found
    }

    /// What a flow with DCTCP or Prague lacks for its algorithm to have an effect.
    fn lacks(&self, flow: &Flow) -> Option<&'static str> {
        if flow.transport == "quic" {
            return (flow.cc.trim() == "noq:bbr3").then_some(UNSEEDED);
        }
        let [without_ecn, without_aqm, without_marks] = match () {
            () if flow.has_algorithm("dctcp") => DCTCP,
            () if flow.has_algorithm("prague") => PRAGUE,
            () => return None,
        };
        if !matches!(self.checked_stack(flow).ecn, Ecn::Accurate | Ecn::L4s) {
            return Some(without_ecn);
        }
        let aqms = self.crossed_aqms(flow);
        match aqms.iter().any(|aqm| marks(aqm)) {
            true => None,
            false if aqms.is_empty() => Some(without_aqm),
            false => Some(without_marks),
        }
    }

    /// A sentence on a built-in algorithm that does not answer the marks of its path as its ECN says.
    fn misuses_ecn(&self, flow: &Flow) -> Option<String> {
        if flow.transport != "tcp" || !self.crossed_aqms(flow).into_iter().any(marks) {
            return None;
        }
        let algorithm =
            Algorithm::parse(&flow.cc, &ConnectionConfig::new(Time::ZERO, 1448)).ok()?;
        match algorithm.bbr_ecn_max_rtt() {
            Some(max_rtt) => self.ignores_marks(flow, max_rtt.as_nanos()),
            None => self.is_no_l4s_sender(flow),
        }
    }

    /// A sentence on a BBR that sends ECT and ignores marks on paths of more than `max_rtt`, ns.
    fn ignores_marks(&self, flow: &Flow, max_rtt: u64) -> Option<String> {
        let rtts = flow.rtts.iter().flatten().chain(&flow.rtt);
        let is_ignoring = rtts.map(|rtt| checked(&TIME, rtt)).all(|rtt| rtt > max_rtt)
            && self.checked_stack(flow).ecn != Ecn::Off;
        let paths = match max_rtt {
            0 => "on any path".to_owned(),
            _ => format!("on paths of more than {}", TIME.format(max_rtt)),
        };
        is_ignoring.then(|| {
            format!(
                "{} sends ECT and does not respond to marks {paths}, so it takes capacity from flows that do; write \
                 ecn = \"off\" in its stack_options",
                flow.cc
            )
        })
    }

    /// A sentence on a Classic algorithm that sends ECT(1).
    fn is_no_l4s_sender(&self, flow: &Flow) -> Option<String> {
        let is_scalable = ["prague", "dctcp"].into_iter().any(|cc| flow.has_algorithm(cc));
        let is_misled = !is_scalable && self.checked_stack(flow).ecn == Ecn::L4s;
        is_misled.then(|| {
            format!(
                "{} sends ECT(1), which is for L4S senders (RFC 9331, section 4), and answers each of their many marks \
                 as a Classic sender does; write ecn = \"classic\" in its stack_options",
                flow.cc
            )
        })
    }

    /// A sentence on a link whose transfers take more than its rate.
    fn is_overloaded(&self, link: &Link) -> Option<String> {
        let rate = checked(&RATE, link.rate.as_ref()?) as f64;
        let crosses = |flow: &&Flow| self.flow_paths(flow).concat().contains(&link.name);
        let load: f64 =
            self.flows.iter().filter(crosses).filter_map(|flow| self.offered(flow)).sum();
        (load > rate * 1.01).then(|| {
            format!(
                "the transfers over {} take {:.2} times its rate, so ever more of them wait; let them arrive less \
                 often, as with a load below 1",
                link.name,
                load / rate
            )
        })
    }

    /// The rate that a flow's transfers take on average, headers included, in bit/s.
    fn offered(&self, flow: &Flow) -> Option<f64> {
        let arrivals = ArrivalTimes::parse(flow.arrivals.as_ref()?).expect("checked arrivals");
        let ArrivalTimes::Every(_, every) = arrivals else { return None };
        let sizes = TransferSizes::parse(flow.sizes.as_ref()?).expect("checked sizes");
        let bytes = sizes.with_headers(&self.checked_stack(flow));
        Some(bytes * 8e9 / every as f64 * flow.repeat as f64)
    }

    fn checked_stack(&self, flow: &Flow) -> Stack {
        let base = self.base_stack().expect("a checked stack");
        self.flow_stack(flow, &base, &key_path![]).expect("a checked stack")
    }

    /// The AQMs of the links that a flow's data crosses.
    fn crossed_aqms(&self, flow: &Flow) -> Vec<&str> {
        let path = self.flow_paths(flow).concat();
        let crossed = self.links.iter().filter(|link| path.contains(&link.name));
        crossed.filter_map(|link| link.aqm.as_deref()).collect()
    }
}

/// A sentence on a link that loses a tenth of its packets or more.
fn loses_much(link: &Link) -> Option<String> {
    let Loss::Random(loss) = Loss::parse(&link.loss).expect("checked losses") else { return None };
    let percent = (loss * 1e8).round() / 1e6;
    (loss >= 0.1).then(|| {
        format!(
            "{} loses {percent} % of its packets; {loss} % would be loss = \"{loss} %\"",
            link.name
        )
    })
}

/// Whether a link has CAKE and a limit of its queue.
fn limits_cake(link: &Link) -> bool {
    let is_cake = link.aqm.as_deref().is_some_and(|aqm| aqm.trim_start().starts_with("cake"));
    is_cake && link.queue.as_deref().is_some_and(|queue| queue.trim() != UNLIMITED)
}

/// Whether an active queue management marks packets.
fn marks(aqm: &str) -> bool {
    let resolved = aqm::resolve(&Value::from(aqm)).expect("a checked AQM");
    match aqm::config(&resolved) {
        AqmConfig::Codel(codel) => codel.ecn || codel.ce_threshold.is_some(),
        AqmConfig::FqCodel(queues) => queues.codel.ecn || queues.codel.ce_threshold.is_some(),
        AqmConfig::Pie(pie) => pie.ecn,
        AqmConfig::Cake(cake) => cake.ecn,
        AqmConfig::FqPie(queues) => queues.pie.ecn,
        AqmConfig::Red(red) => red.ecn,
        AqmConfig::DualPi2(_) | AqmConfig::Step(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoEnvironment;

    fn warnings(link: &str, flow: &str) -> Vec<String> {
        let text = format!(
            "duration = \"9 s\"\n[[link]]\nname = \"a\"\nrate = \"9 Mbit/s\"\ndelay = \"9 ms\"\n{link}\n[[flow]]\ncc = \"reno\"\n{flow}\n"
        );
        let experiment = Experiment::from_toml(&text, "", &[] as &[&str]).expect("valid");
        experiment.resolve(&NoEnvironment).expect("valid").warnings(true)
    }

    #[test]
    fn losses_of_a_tenth_of_the_packets_are_warned_of() {
        let said = "a loses 10 % of its packets; 0.1 % would be loss = \"0.1 %\"";
        assert_eq!(warnings("loss = 0.1", ""), [said]);
        assert_eq!(warnings("loss = 0.05", ""), [] as [&str; 0]);
    }

    #[test]
    fn transfers_that_take_more_than_a_link_carries_are_warned_of() {
        let flow = |load, repeat| {
            let arrivals = format!("arrivals = \"poisson(load={load})\"");
            format!("{arrivals}\nsizes = \"constant(size=9 kB)\"\nrepeat = {repeat}")
        };
        let said = "the transfers over a take 1.50 times its rate, so ever more of them wait; let them arrive less \
                    often, as with a load below 1";
        assert_eq!(warnings("", &flow(1.5, 1)), [said]);
        assert_eq!(warnings("", &flow(0.5, 3)), [said]);
        assert_eq!(warnings("", &flow(1.0, 1)), [] as [&str; 0]);
    }
}
