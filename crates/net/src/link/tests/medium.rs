//! Links on a shared medium, and losses that change.

use super::{NumberedPacket as Numbered, full, us};
use crate::link::*;

/// A medium of its own, with transmissions of `frames` frames.
fn alone(frames: u32) -> MediumConfig {
    MediumConfig { frames, time: Span::from_secs(1), stations: 0, busy: Span::ZERO }
}

fn wifi(medium: MediumConfig, rate: u64) -> Link<Numbered> {
    Link::new(&LinkConfig {
        rate: NonZeroU64::new(rate),
        delay: Span::from_millis(1),
        queue: Limit::Packets(200),
        medium: Some(medium),
        seed: 1,
        ..LinkConfig::default()
    })
}

/// Arrival times of packets over a link that always has some to send.
fn saturated(mut link: Link<Numbered>, packets: usize) -> Vec<Time> {
    let mut arrivals = Vec::new();
    let mut now = Time::ZERO;
    while arrivals.len() < packets {
        while link.push(now, full(0)).is_ok() {}
        now = link.next_arrival();
        arrivals.extend(std::iter::from_fn(|| link.pop(now)).map(|_| now));
    }
    arrivals
}

/// Mbit/s of packets of 1500 bytes.
fn throughput(arrivals: &[Time]) -> f64 {
    let time = arrivals[arrivals.len() - 1].since(Time::ZERO).as_secs_f64();
    arrivals.len() as f64 * 12_000.0 / time / 1e6
}

#[test]
fn the_base_rates_of_ending_the_anomaly_are_met() {
    // Table 1 of the paper: mean frames of a transmission, PHY rate and base rate in Mbit/s.
    for (frames, phy, base) in
        [(4.47, 144.4, 97.3), (5.08, 144.4, 101.1), (1.89, 7.2, 6.5), (18.44, 144.4, 126.7)]
    {
        let rate = |frames: f64| {
            let link = wifi(alone(frames as u32), (phy * 1e6) as u64);
            throughput(&saturated(link, 20_000))
        };
        let (below, above) = (rate(f64::floor(frames)), rate(f64::ceil(frames)));
        assert!(below < base && base < above, "{below:.1} < {base} < {above:.1}");
        // Both follow R = n l / (T_data + T_oh), T_BO being 67.5 us on average.
        let expected = |n: f64| {
            let time = 8.0 * n * 1544.0 / phy + 32.0 + 34.0 + 32.0 + 464.0 / phy + 67.5;
            n * 12_000.0 / time
        };
        assert!((above / expected(frames.ceil()) - 1.0).abs() < 0.005, "{above}");
    }
}

#[test]
fn frames_of_a_transmission_arrive_together() {
    let arrivals = saturated(wifi(alone(10), 144_400_000), 1000);
    for frames in arrivals.chunks_exact(10) {
        assert!(frames.iter().all(|&at| at == frames[0]));
    }
    assert!(arrivals[10] > arrivals[9]);
}

#[test]
fn a_transmission_lasts_no_longer_than_its_limit() {
    // 4 ms at 144.4 Mbit/s are 72,200 bytes: 46 frames of 1544 bytes.
    let medium = MediumConfig { time: Span::from_millis(4), ..alone(64) };
    let arrivals = saturated(wifi(medium, 144_400_000), 460);
    assert!(arrivals.chunk_by(|a, b| a == b).all(|frames| frames.len() == 46));
}

#[test]
fn stations_that_always_send_have_equal_shares_of_accesses() {
    let medium = MediumConfig { stations: 3, busy: Span::from_millis(2), ..alone(32) };
    let arrivals = saturated(wifi(medium, 144_400_000), 32 * 4000);
    // Per transmission of its own: three of others, and its own time as above.
    let own = 8.0 * 32.0 * 1544.0 / 144.4 + 98.0 + 464.0 / 144.4 + 67.5;
    let expected = 32.0 * 12_000.0 / (own + 6000.0);
    // The standard error of the mean of 4000 geometric numbers of mean 3 is 1.8 %.
    let ratio = throughput(&arrivals) / expected;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_queue_on_a_medium_is_as_long_as_its_limit() {
    let mut link = wifi(alone(10), 144_400_000);
    let accepted = (0..500).filter(|_| link.push(us(0), full(0)).is_ok()).count();
    assert_eq!(accepted, 200);
    let statistics = link.statistics(us(0));
    assert_eq!((statistics.backlog.packets, statistics.dropped), (200, 300));
    let later = link.statistics(us(500));
    assert_eq!((later.sent_packets, later.sent_bytes, later.backlog.packets), (10, 15_000, 190));
}

#[test]
fn nothing_crosses_a_medium_in_a_suspension() {
    let steps = vec![(us(0), 100_000_000), (us(10_000), 0), (us(160_000), 100_000_000)];
    let mut link: Link<Numbered> = Link::new(&LinkConfig {
        rate_process: Some(RateProcess::Piecewise(steps)),
        medium: Some(alone(32)),
        ..LinkConfig::default()
    });
    let mut arrivals = Vec::new();
    for ms in 0..200 {
        let now = us(ms * 1000);
        link.push(now, full(0)).expect("there is no limit");
        while link.next_arrival() <= now {
            let at = link.next_arrival();
            arrivals.extend(link.pop(at).map(|_| at));
        }
    }
    assert!(arrivals.iter().all(|&at| at < us(10_000) || at > us(160_000)));
    let after = arrivals.iter().filter(|&&at| at > us(160_000) && at < us(185_000)).count();
    assert!((160..=176).contains(&after), "all that waited arrives within 25 ms: {after}");
}

#[test]
fn the_probability_of_losses_changes_at_its_steps() {
    let mut link: Link<Numbered> = Link::new(&LinkConfig {
        loss_steps: vec![(us(0), 0.1), (us(100_000), 0.0), (us(200_000), 0.5), (us(300_000), 1.0)],
        seed: 3,
        ..LinkConfig::default()
    });
    let mut lost = [0; 4];
    for packet in 0..400_000u64 {
        lost[packet as usize / 100_000] += u64::from(link.push(us(packet), full(0)).is_err());
    }
    // Four standard deviations of the binomial distribution.
    assert!(lost[0].abs_diff(10_000) < 380 && lost[2].abs_diff(50_000) < 633, "{lost:?}");
    assert_eq!((lost[1], lost[3]), (0, 100_000));
    assert_eq!(link.statistics(us(400_000)).lost, lost.iter().sum());
}
