//! Drain: when is the queue gone that Startup built?
//!
//! When no more is in flight than the BDP (draft-cardwell-iccrg-bbr-congestion-control-00, section
//! 4.3.3). BBRv3 gives up after three rounds, for then Startup overestimated the bandwidth
//! (draft-ietf-ccwg-bbr-06, section 5.3.2).

/// Whether Drain is over.
pub fn is_over(in_network: f64, bdp: f64, rounds_spent: u64, most_rounds: Option<u64>) -> bool {
    in_network <= bdp || most_rounds.is_some_and(|most| rounds_spent > most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_gone_when_the_bdp_is_in_flight() {
        assert!(!is_over(101.0, 100.0, 0, None));
        assert!(is_over(100.0, 100.0, 0, None));
    }

    #[test]
    fn bbr3_gives_up_draining_after_three_rounds() {
        assert!(!is_over(101.0, 100.0, 3, Some(3)));
        assert!(is_over(101.0, 100.0, 4, Some(3)));
        assert!(!is_over(101.0, 100.0, 1000, None));
    }
}
