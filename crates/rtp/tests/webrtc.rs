//! The situations and the expectations of libwebrtc's own tests of its SCReAMv2
//! (`modules/congestion_controller/scream/scream_v2_unittest.cc`). Its packets have 255 bytes and no
//! frames: 240 frames a second come near to that.

mod common;

use common::{internal, run, values};
use dumbbell_rtp::{Feedback, MediaControl, MediaEcn, PacketResult, RtpOptions, Scream};
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Span, Time};

fn file(link: &str, ecn: &str) -> String {
    format!(
        "duration = \"15 s\"\n[[link]]\nname = \"l\"\n{link}\n[[flow]]\ntransport = \"rtp\"\n\
         cc = \"scream\"\napp_rate = \"100 Mbit/s\"\ntransport_options = {{ fps = 240, payload = 255, \
         size_noise = 0, min_rate = \"1 kbit/s\", start_rate = \"100 kbit/s\", \
         feedback_interval = \"25 ms\", ecn = \"{ecn}\" }}\n"
    )
}

/// Minimum and maximum of the target, Mbit/s, and the maximum of the smoothed round trip, s.
fn adapted(text: &str, from: f64, to: f64) -> (f64, f64, f64) {
    let output = run(text);
    let targets = internal(&output, "target_bitrate", from, to);
    let fold = |with: fn(f64, f64) -> f64, first| targets.iter().copied().fold(first, with) * 8e-6;
    let rtts = values(&output, 0, from, to).into_iter().map(|row| f64::from(row.srtt));
    (fold(f64::min, f64::INFINITY), fold(f64::max, 0.0), rtts.fold(0.0, f64::max))
}

#[test]
fn scream_adapts_to_1_mbit_s_by_marks_within_4_s() {
    let link = "rate = \"1 Mbit/s\"\ndelay = \"25 ms\"\nqueue = \"unlimited\"\naqm = \"step(threshold=5 ms)\"";
    let (min, max, rtt) = adapted(&file(link, "l4s"), 4.0, 9.0);
    assert!(min > 0.65 && max < 1.1 && rtt < 0.075, "{min} {max} {rtt}");
}

#[test]
fn scream_adapts_to_2_mbit_s_by_delay_within_10_s() {
    let link = "rate = \"2 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"unlimited\"";
    let (min, max, rtt) = adapted(&file(link, "off"), 10.0, 15.0);
    assert!(min > 1.5 && max < 2.5 && rtt < 0.080, "{min} {max} {rtt}");
}

#[test]
fn scream_adapts_to_5_mbit_s_by_losses_within_10_s() {
    let link = "rate = \"5 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"3 packets\"";
    let (min, max, rtt) = adapted(&file(link, "off"), 10.0, 15.0);
    assert!(min > 1.5 && max < 5.4 && rtt < 0.060, "{min} {max} {rtt}");
}

/// Reports on 20 packets, of which so many are marked, every 25 ms for 2 s with a round trip of
/// 10 ms.
fn alphas(marked: usize) -> Vec<f64> {
    let mut scream = Scream::new(&RtpOptions { ecn: MediaEcn::L4s, ..RtpOptions::default() });
    let alpha = |tick: u64| {
        let now = Time::ZERO + Span::from_millis(1000 + 25 * tick);
        let packet = |at: usize| PacketResult {
            number: at as u64,
            sent_at: now - Span::from_millis(10),
            size: 1000,
            arrived_at: Some(now - Span::from_millis(5)),
            ecn: if at < marked { EcnCodepoint::Ce } else { EcnCodepoint::Ect1 },
        };
        let packets: Vec<_> = (0..20).map(packet).collect();
        let srtt = Some(Span::from_millis(10));
        let (bytes_newly_acked, bytes_in_flight) = (20_000, 20_000);
        scream.on_feedback(&Feedback {
            now,
            packets: &packets,
            bytes_newly_acked,
            bytes_in_flight,
            srtt,
        });
        scream.l4s_alpha()
    };
    (0..80).map(alpha).collect()
}

#[test]
fn l4s_alpha_rises_to_the_share_of_marked_packets() {
    let alphas = alphas(4);
    assert!(alphas.windows(2).all(|pair| pair[1] >= pair[0]));
    assert!((alphas[79] - 0.2).abs() < 0.01, "{}", alphas[79]);
}
