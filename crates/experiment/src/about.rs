//! What each congestion control algorithm is, and what its options are.

/// Name and origin of each built-in algorithm.
pub(crate) static ALGORITHMS: &[(&str, &str)] = &[
    ("reno", "RFC 5681"),
    ("cubic", "RFC 9438 with fast convergence as Linux has it, and its HyStart"),
    ("cubic-2006", "CUBIC as of Linux 2.6.18, with the two arithmetic errors of that kernel"),
    ("bic", "BIC as in Linux"),
    ("hstcp", "HighSpeed TCP, RFC 3649"),
    ("stcp", "Scalable TCP as in Linux"),
    ("htcp", "H-TCP as in Linux"),
    ("hybla", "Hybla as in Linux, for long round trips"),
    ("westwood", "Westwood+ as in Linux"),
    ("illinois", "Illinois as in Linux"),
    ("yeah", "YeAH as in Linux"),
    ("vegas", "Vegas as in Linux"),
    ("veno", "Veno as in Linux, for losses at random"),
    ("cdg", "CAIA delay gradient (Hayes and Armitage 2011) as in Linux"),
    ("lp", "TCP-LP (Kuzmanovic and Knightly 2006) as in Linux, for background transfers"),
    ("nv", "TCP-NV as in Linux, for data centres"),
    ("fast", "FAST TCP, Wei, Jin, Low and Hegde 2006"),
    ("ledbat++", "draft-irtf-iccrg-ledbat-plus-plus, for background transfers"),
    ("dctcp", "RFC 8257; needs a stack with accurate ECN and a queue that marks"),
    (
        "prague",
        "TCP Prague for L4S, draft-briscoe-iccrg-prague-congestion-control-04 and L4STeam's Linux; sends \
         ECT(1) and needs a queue that marks",
    ),
    ("copa", "Copa, Arun and Balakrishnan 2018, with the velocity of the authors' code"),
    ("c4", "C4, draft-huitema-ccwg-c4-spec: for media over QUIC, by delivery rate and maximum RTT"),
    ("vivace", "PCC Vivace, Dong et al. 2018: a rate that follows the gradient of its utility"),
    (
        "proteus",
        "PCC Proteus, Meng et al. 2020: Vivace's rate control for primary flows and scavengers",
    ),
    ("lia", "coupled: RFC 6356"),
    ("olia", "coupled: OLIA, Khalili et al. 2012"),
    ("balia", "coupled: BALIA, Peng, Walid, Hwang and Low 2016"),
    ("wvegas", "coupled: weighted Vegas, Cao, Xu and Fu 2012, as in Linux's Multipath TCP"),
    ("dbac", "coupled: DBAC, Han 2024"),
    ("udt", "UDT's native algorithm, draft-gg-udt-03 and UDT4's library"),
    ("ar-udt", "AR-UDT, An, Wang, Kim and Cho: UDT that adapts between acknowledgements"),
    ("bbr", "BBRv1: draft-cardwell-iccrg-bbr-congestion-control-00, and Linux's `bbr`"),
    ("bbr2", "BBRv2: Google's Linux branch `v2alpha`, with the gains of Cho and Cho 2024"),
    ("f-bbr2", "F-BBRv2, Cho and Cho 2024: BBRv2 with a larger share beside CUBIC"),
    ("bbr3", "BBRv3: draft-ietf-ccwg-bbr, and Google's published description"),
];

/// What an option of the algorithms in `of` is; of all algorithms that have it if `of` is empty.
struct AboutOption {
    name: &'static str,
    of: &'static [&'static str],
    about: &'static str,
}

const fn about(
    name: &'static str,
    of: &'static [&'static str],
    about: &'static str,
) -> AboutOption {
    AboutOption { name, of, about }
}

/// What the option `name` of `algorithm` is, with its unit and the name that its source has for it.
pub(crate) fn option_of(algorithm: &str, name: &str) -> Option<&'static str> {
    let fits = |option: &&AboutOption| {
        option.name == name && (option.of.is_empty() || option.of.contains(&algorithm))
    };
    OPTIONS.iter().find(fits).map(|option| option.about)
}

static OPTIONS: &[AboutOption] = &[
    // Of most.
    about("initial_ssthresh", &[], "the slow start threshold at the beginning, packets; 0: none"),
    about(
        "slow_start",
        &["cdg"],
        "how slow start ends before the first backoff: by both of HyStart's detectors, none, or one",
    ),
    about(
        "slow_start",
        &[],
        "how the window grows in slow start, and when that ends before there is a loss",
    ),
    about(
        "rate_limited_increase",
        &[],
        "how far a window grows that the flow does not use: draft-ietf-ccwg-ratelimited-increase",
    ),
    about(
        "arithmetic",
        &["lia", "dbac"],
        "whether LIA's increase is computed as in the kernel of the MPTCP project",
    ),
    about(
        "arithmetic",
        &["hstcp"],
        "whether growth counts acknowledgements, by the RFC's table and in whole packets, as in Linux; if exact, packets, by the equation",
    ),
    about(
        "arithmetic",
        &[],
        "whether windows are whole packets and times jiffies, as in Linux; exact if the stack's tick is 0",
    ),
    about("abe", &[], "whether a mark lowers the window less than a loss: RFC 8511"),
    about(
        "beta_ecn",
        &[],
        "with abe, the share of the window that a mark leaves (RFC 8511: beta_ecn)",
    ),
    about(
        "fast_convergence",
        &[],
        "whether a loss below the last maximum lowers that maximum, for new flows",
    ),
    // BBR.
    about(
        "loss_thresh",
        &[],
        "the share of a flight that, if lost, shows too much in flight (LossThresh)",
    ),
    about(
        "beta",
        &["bbr2", "f-bbr2", "bbr3"],
        "by what congestion multiplies the bounds of rate and flight (Beta)",
    ),
    about("headroom", &[], "the share of inflight_longterm that is left to other flows (Headroom)"),
    about("ecn", &[], "whether marks count as congestion, if min_rtt is at most ecn_max_rtt"),
    about("ecn_max_rtt", &[], "the largest min_rtt with which the flow responds to marks"),
    about("inflight_shortterm", &[], "off: congestion between probes lowers bw_shortterm only"),
    about(
        "ack_phase",
        &[],
        "off: max_bw's filter advances when ProbeBW_DOWN begins, not a round later (pull request 5 of the draft)",
    ),
    about("drain_gain", &[], "the pacing gain of Drain"),
    about("down_gain", &[], "the pacing gain of ProbeBW_DOWN"),
    about("up_gain", &[], "the pacing gain of ProbeBW_UP"),
    about("drain_rounds", &[], "round trips after which Drain ends in any case"),
    about(
        "probe_rtt_interval",
        &[],
        "the time without a lower RTT after which ProbeRTT comes (ProbeRTTInterval)",
    ),
    about(
        "probe_wait",
        &[],
        "the shortest time between two probes for bandwidth; up to 1 s at random is added",
    ),
    about("min_rtt_window", &[], "how long min_rtt lives (MinRTTFilterLen)"),
    about(
        "min_rtt_expiry",
        &[],
        "when an old min_rtt expires: as ProbeRTT begins, as in the draft, or as it ends",
    ),
    about(
        "threshold",
        &["f-bbr2"],
        "CUBIC is there if min_rtt is more than this many times the first one",
    ),
    about("cruise_gain", &[], "the pacing gain of ProbeBW_CRUISE while CUBIC is there"),
    // Loss-based algorithms.
    about("beta", &["cubic"], "the share of the window that a loss leaves (RFC 9438: beta_cubic)"),
    about(
        "tcp_friendliness",
        &[],
        "the Reno-friendly window: as in Linux, as in RFC 9438, or none",
    ),
    about("c", &[], "the factor of the cubic, packets/s^3 (RFC 9438: C)"),
    about("errors", &[], "whether the two arithmetic errors of that kernel are there"),
    about(
        "s_max",
        &[],
        "the largest growth in a round trip, packets (S_max; max_increment in Linux)",
    ),
    about("low_window", &[], "the window up to which it is Reno, packets"),
    about("beta", &["bic", "stcp"], "the share of the window that a loss leaves"),
    about("smooth_part", &[], "round trips that the window takes near its last maximum"),
    about(
        "ack_ratio",
        &[],
        "whether growth is multiplied by the packets per acknowledgement, as in Linux; off: the paper's formula",
    ),
    about(
        "ai",
        &[],
        "the window grows by one packet for this many that are acknowledged, 1 / a in the paper",
    ),
    about(
        "rtt_scaling",
        &[],
        "whether growth is scaled by the round-trip time (use_rtt_scaling in Linux)",
    ),
    about(
        "bandwidth_switch",
        &[],
        "whether a change of throughput by a fifth makes a loss halve the window (use_bandwidth_switch)",
    ),
    about("rtt0", &[], "the round-trip time whose growth every flow has (RTT0)"),
    about("beta", &["veno"], "packets in the queue below which a loss counts as random"),
    // Algorithms that respond to delay.
    about("alpha", &["vegas"], "packets in the queue below which the window grows"),
    about("beta", &["vegas"], "packets in the queue above which the window shrinks"),
    about("gamma", &["vegas"], "packets in the queue that end slow start"),
    about("alpha", &["fast"], "packets that the flow keeps in the queue"),
    about(
        "gamma",
        &["fast"],
        "the share of the way to its target that the window goes in a round trip",
    ),
    about("window", &[], "how many gradients of the delay are averaged"),
    about("backoff_beta", &[], "the share of the window that a backoff leaves"),
    about(
        "backoff_factor",
        &[],
        "how likely a gradient makes the flow back off; 1000 / (3 window) for the paper's G = 3",
    ),
    about(
        "use_ineff",
        &[],
        "backoffs that did not lower the delay after which the flow ignores delays for a while; 0: never",
    ),
    about(
        "use_shadow",
        &[],
        "whether a loss starts from the window as it would be without backoffs",
    ),
    about("use_tolerance", &[], "whether a loss while the queue is not full is ignored"),
    about("pad", &[], "packets that may be queued"),
    about("target", &[], "the queueing delay that the flow aims at"),
    about("g", &[], "the weight of a round trip in the share of marked packets (g)"),
    about("alpha", &["dctcp"], "the share of marked packets that is assumed at the beginning"),
    about("rtt_target", &[], "the round-trip time whose growth flows with a shorter one have"),
    about("delta", &[], "one over the packets that the flow aims to queue"),
    about(
        "doubling_after",
        &[],
        "round trips in one direction before the velocity doubles; the paper has 3",
    ),
    about("mode_switching", &[], "whether the flow competes for the queue where others fill it"),
    about("mode", &[], "whether it competes, yields, or yields above the threshold only"),
    about("threshold", &["proteus"], "the rate above which it yields with mode=hybrid, Mbit/s"),
    // Coupled algorithms.
    about("total_alpha", &[], "packets that all subflows together keep in the queue"),
    about("gamma", &["wvegas"], "packets in the queue that end slow start"),
    about("threshold", &["dbac"], "the window from which a subflow is CUBIC, bytes"),
    about("p", &[], "the loss rate at which the windows of Reno and CUBIC are compared"),
    about("coupling", &[], "what a subflow with a smaller window does"),
    // UDT.
    about("rules", &[], "whose rules: those of UDT4's library, or of Gu's module for NS-2"),
    about("min_increase", &[], "the least increase in a SYN interval of 10 ms, packets"),
    about(
        "w1",
        &[],
        "the weight of the older of two changes of the round-trip time, where it predicts the next one",
    ),
    about(
        "alpha",
        &["ar-udt"],
        "the ratio of predicted and present round-trip time up to which the rate grows fast",
    ),
    about("beta", &["ar-udt"], "the ratio from which the rate shrinks"),
    about(
        "smooth",
        &[],
        "whether it predicts from smoothed round-trip times; off: from the reports themselves",
    ),
    about("adapt", &[], "whether the rate adapts between acknowledgements; off: it only predicts"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_cc::{Algorithm, NAMES};

    #[test]
    fn every_algorithm_is_here_and_on_the_page_of_algorithms() {
        let page = include_str!("../../../docs/reference/algorithms.md");
        for name in NAMES {
            let about = ALGORITHMS.iter().find(|(other, _)| other == name).expect(name).1;
            assert!(page.contains(&format!("| `{name}` | {about}")), "{name}");
        }
        assert_eq!(ALGORITHMS.len(), NAMES.len());
    }

    #[test]
    fn every_option_says_what_it_is() {
        let mut used = 0;
        for name in NAMES {
            for option in Algorithm::options(name).expect("a built-in algorithm") {
                assert!(option_of(name, option.name).is_some(), "{name}({}=)", option.name);
                used += 1;
            }
        }
        assert!(used > OPTIONS.len());
    }

    #[test]
    fn no_option_is_described_that_no_algorithm_has() {
        for option in OPTIONS {
            let has = |name: &&&str| {
                let options = Algorithm::options(name).expect("a built-in algorithm");
                options.iter().any(|other| other.name == option.name)
            };
            let of = if option.of.is_empty() { NAMES } else { option.of };
            let having = of.iter().filter(has).count();
            assert!(having > 0 && (option.of.is_empty() || having == of.len()), "{}", option.name);
        }
    }
}
