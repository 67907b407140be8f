//! What each congestion control algorithm is.

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

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_cc::NAMES;

    #[test]
    fn every_algorithm_is_here_and_on_the_page_of_algorithms() {
        let page = include_str!("../../../docs/reference/algorithms.md");
        for name in NAMES {
            let about = ALGORITHMS.iter().find(|(other, _)| other == name).expect(name).1;
            assert!(page.contains(&format!("| `{name}` | {about}")), "{name}");
        }
        assert_eq!(ALGORITHMS.len(), NAMES.len());
    }
}
