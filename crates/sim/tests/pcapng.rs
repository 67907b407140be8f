//! The packet log as a capture file, read back with independent parsers.

use dumbbell_net::{AqmConfig, CodelConfig, FqCodelConfig, Packet as _, StepConfig};
use dumbbell_sim::{CapturePoint, LinkSpec, PacketEvent, PathSpec, RunOutput, Scenario};
use dumbbell_tcp::Ecn;
use dumbbell_udt::{Packet, RequestType, codec};
use dumbbell_units::Span;
use etherparse::{NetHeaders, PacketHeaders, TcpHeader, TcpOptionElement, TransportHeader};
use hmac::{Hmac, Mac};
use pcap_file::pcapng::{Block, PcapNgReader};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

const ISN: u32 = 1_000_000;

fn scenario() -> Scenario {
    let stack = serde_json::to_string(&dumbbell_tcp::Stack::linux()).expect("it is plain data");
    let flow = |name: &str, log: bool| {
        format!(
            r#"{{"name": "{name}", "cc": "cubic", "path": ["bottleneck"], "return_path": [],
                "return_delay_ns": 20000000, "start_ns": 0, "stop_ns": null, "bytes": 3000001,
                "app_rate_bps": null, "stack": {stack}, "log": {log}}}"#
        )
    };
    let json = format!(
        r#"{{"seed": 1, "duration_ns": 20000000000, "sample_ns": 1000000000, "start_jitter_ns": 0,
            "links": [{{"name": "bottleneck", "rate_bps": 10000000, "delay_ns": 20000000,
                        "queue": {{"packets": 30}}, "loss": 0.002}}],
            "flows": [{}, {}]}}"#,
        flow("logged", true),
        flow("other", false)
    );
    Scenario::from_json(&json).expect("it is valid")
}

/// The logged flow over two paths, without the other one.
fn over_two_paths() -> Scenario {
    let mut scenario = scenario();
    let second = LinkSpec { name: "second".to_owned(), ..scenario.links[0].clone() };
    scenario.links.push(second);
    scenario.flows.truncate(1);
    let return_delay_ns = 40_000_000;
    let path = vec!["second".to_owned()];
    let subflow = PathSpec { path, return_path: Vec::new(), return_delay_ns };
    scenario.flows[0].additional_subflows = vec![subflow];
    scenario
}

struct Captured {
    at: u128,
    source: [u8; 4],
    ecn: u8,
    tcp: TcpHeader,
    from_sender: bool,
    payload: usize,
    comment: Option<String>,
}

fn capture(outcome: &RunOutput, scenario: &Scenario, point: CapturePoint) -> Vec<Captured> {
    let mut file = Vec::new();
    outcome.packets.write_pcapng(point, scenario, &mut file).expect("memory takes all");
    let mut reader = PcapNgReader::new(file.as_slice()).expect("a section header");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a block") {
            packets.push(parse(&packet));
        }
    }
    packets
}

fn parse(packet: &pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock<'_>) -> Captured {
    let headers = PacketHeaders::from_ip_slice(&with_payload(packet)).map(|h| (h.net, h.transport));
    let (Some(NetHeaders::Ipv4(ip, _)), Some(TransportHeader::Tcp(tcp))) =
        headers.expect("an IP packet")
    else {
        panic!("not TCP over IPv4");
    };
    let payload = packet.original_len as usize - packet.data.len();
    assert_eq!(u32::from(ip.total_len), packet.original_len);
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    let zeros = vec![0; payload];
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &zeros).expect("it fits"));
    let comment = packet.options.iter().find_map(|option| match option {
        pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Comment(text) => {
            Some(text.to_string())
        }
        _ => None,
    });
    let from_sender = tcp.destination_port == 5_001;
    Captured {
        at: packet.timestamp.as_nanos(),
        source: ip.source,
        ecn: ip.ecn.value(),
        tcp,
        from_sender,
        payload,
        comment,
    }
}

fn with_payload(
    packet: &pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock<'_>,
) -> Vec<u8> {
    let mut bytes = packet.data.to_vec();
    bytes.resize(packet.original_len as usize, 0);
    bytes
}

#[test]
fn the_senders_capture_has_every_packet_with_its_sequence_number() {
    let scenario = scenario();
    let outcome = scenario.run().expect("it runs");
    let packets = capture(&outcome, &scenario, CapturePoint::Sender);
    assert!(packets.windows(2).all(|pair| pair[0].at <= pair[1].at), "in the order of time");
    let data: Vec<_> = packets.iter().filter(|p| p.from_sender && p.payload > 0).collect();
    assert_eq!(data.len() as u64, outcome.flows.sent[0], "only the flow that asked for it");
    let bytes: BTreeSet<u32> = data
        .iter()
        .flat_map(|packet| {
            let first = packet.tcp.sequence_number - ISN - 1;
            (first..first + packet.payload as u32).step_by(1448)
        })
        .collect();
    assert_eq!(bytes.len(), 3_000_001usize.div_ceil(1448));
    assert_eq!(bytes.last(), Some(&(3_000_001 / 1448 * 1448)));
    let last = packets.iter().rev().find(|packet| !packet.from_sender).expect("it was answered");
    assert_eq!(last.tcp.acknowledgment_number, ISN + 1 + 3_000_001, "all is acknowledged");
}

#[test]
fn dropped_packets_carry_a_comment_and_never_reach_the_receiver() {
    let scenario = scenario();
    let outcome = scenario.run().expect("it runs");
    let sent = capture(&outcome, &scenario, CapturePoint::Sender);
    let dropped = sent.iter().filter(|packet| packet.comment.is_some()).count();
    assert!(
        sent.iter()
            .any(|p| { p.comment.as_deref() == Some("dropped at bottleneck: the queue was full") })
    );
    assert!(
        sent.iter().any(|p| p.comment.as_deref() == Some("dropped at bottleneck: random loss"))
    );
    let received = capture(&outcome, &scenario, CapturePoint::Receiver);
    let data = |packets: &[Captured]| packets.iter().filter(|p| p.from_sender).count();
    assert_eq!(data(&sent) - dropped, data(&received));
}

#[test]
fn fq_codel_overlimit_drops_are_commented_as_a_full_queue() {
    let mut scenario = scenario();
    // A CoDel that never drops.
    let codel = CodelConfig { target: Span::from_secs(1_000), ..CodelConfig::default() };
    let fq = FqCodelConfig { codel, ..FqCodelConfig::default() };
    (scenario.links[0].aqm, scenario.links[0].loss) = (Some(AqmConfig::FqCodel(fq)), 0.0);
    let outcome = scenario.run().expect("it runs");
    let sent = capture(&outcome, &scenario, CapturePoint::Sender);
    let comments: BTreeSet<_> = sent.iter().filter_map(|packet| packet.comment.clone()).collect();
    assert_eq!(comments, ["dropped at bottleneck: the queue was full".to_owned()].into());
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    let mut scenario = scenario();
    let stack = &mut scenario.flows[0].stack;
    (stack.receive_window, stack.autotuning) = (100, false);
    let outcome = scenario.run().expect("it runs");
    let packets = capture(&outcome, &scenario, CapturePoint::Sender);
    // 144,800 bytes exceed 16 bits; in units of 4 bytes they are 36,200.
    let windows = |is_syn| -> BTreeSet<u16> {
        packets.iter().filter(|p| p.tcp.syn == is_syn).map(|p| p.tcp.window_size).collect()
    };
    assert_eq!((windows(true), windows(false)), ([0xffff].into(), [36_200].into()));
}

/// RFC 9768: the ACE field counts CE packets modulo 8, from 5 on.
#[test]
fn an_l4s_flow_is_captured_with_ect_1_ce_and_the_ace_field() {
    let mut scenario = scenario();
    scenario.flows[0].stack.ecn = Ecn::L4s;
    scenario.links[0].aqm = Some(AqmConfig::Step(StepConfig::default()));
    (scenario.links[0].queue, scenario.links[0].loss) = (None, 0.0);
    let outcome = scenario.run().expect("it runs");
    let packets = capture(&outcome, &scenario, CapturePoint::Receiver);
    let ace = |tcp: &TcpHeader| u8::from(tcp.ns) << 2 | u8::from(tcp.cwr) << 1 | u8::from(tcp.ece);
    let of = |from_sender| packets.iter().filter(move |p| p.from_sender == from_sender);
    // The SYN asks; what acknowledges the SYN-ACK says that it was ECT(1); then the count begins at 5.
    assert_eq!(of(true).map(|p| ace(&p.tcp)).take(3).collect::<Vec<_>>(), [7, 3, 5]);
    assert!(of(true).all(|p| [1, 3].contains(&p.ecn)) && of(false).all(|p| p.ecn == 1));
    let marked = of(true).filter(|p| p.ecn == 3).count();
    assert!(marked > 50, "{marked}");
    let acks: Vec<u8> = of(false).map(|p| ace(&p.tcp)).collect();
    assert_eq!(acks[..2], [3, 5], "the SYN-ACK has seen ECT(1)");
    assert_eq!(acks.last(), Some(&((5 + marked % 8) as u8 % 8)));
}

/// The same with a return link that loses one in twenty acknowledgements.
fn with_lossy_return() -> Scenario {
    let mut scenario = scenario();
    let mut back = scenario.links[0].clone();
    (back.name, back.rate_bps, back.queue, back.loss) = ("back".to_owned(), None, None, 0.05);
    scenario.links.push(back);
    scenario.flows[0].return_path = vec!["back".to_owned()];
    scenario
}

#[test]
fn as_many_acks_carry_a_drop_comment_as_did_not_arrive() {
    let scenario = with_lossy_return();
    let outcome = scenario.run().expect("it runs");
    let acknowledgements = |point| {
        let mut packets = capture(&outcome, &scenario, point);
        packets.retain(|packet| !packet.from_sender);
        packets
    };
    let sent = acknowledgements(CapturePoint::Receiver);
    let dropped = sent.iter().filter(|packet| packet.comment.is_some()).count();
    assert!(dropped > 10, "{dropped}");
    // The flow is complete, so nothing is in flight.
    assert_eq!(sent.len() - dropped, acknowledgements(CapturePoint::Sender).len());
}

#[test]
fn sack_blocks_and_timestamps_are_those_of_the_acknowledgement() {
    let scenario = scenario();
    let outcome = scenario.run().expect("it runs");
    let received = capture(&outcome, &scenario, CapturePoint::Receiver);
    let mut arrived = BTreeSet::new();
    let mut sacks = 0;
    for packet in &received {
        let options: Vec<_> = packet.tcp.options_iterator().map(|o| o.expect("valid")).collect();
        assert!(options.iter().any(|o| matches!(o, TcpOptionElement::Timestamp(..))));
        if packet.from_sender {
            arrived.insert(packet.tcp.sequence_number);
            continue;
        }
        for option in options {
            if let TcpOptionElement::SelectiveAcknowledgement(first, more) = option {
                sacks += 1;
                for (start, end) in std::iter::once(first).chain(more.into_iter().flatten()) {
                    assert!(arrived.contains(&start), "only what arrived is acknowledged");
                    assert!(start < end);
                }
            }
        }
    }
    assert!(sacks > 0, "packets were lost, so there is SACK");
}

fn timestamps(packet: &Captured) -> Option<(u32, u32)> {
    packet.tcp.options_iterator().find_map(|option| match option.expect("valid") {
        TcpOptionElement::Timestamp(tsval, tsecr) => Some((tsval, tsecr)),
        _ => None,
    })
}

/// RFC 7323, section 3.2: TSval is the clock of the host that sends.
#[test]
fn both_captures_have_the_time_when_an_acknowledgement_was_sent() {
    let scenario = with_lossy_return();
    let outcome = scenario.run().expect("it runs");
    let acknowledged = |point| {
        let mut packets = capture(&outcome, &scenario, point);
        packets.retain(|packet| !packet.from_sender && packet.comment.is_none());
        packets.iter().filter_map(timestamps).collect::<Vec<_>>()
    };
    let [sent, arrived] = [CapturePoint::Receiver, CapturePoint::Sender].map(acknowledged);
    assert!(sent == arrived, "the clock of the host that sends");
    let (mut recent, mut data) = (0, 0);
    for packet in capture(&outcome, &scenario, CapturePoint::Sender) {
        let (tsval, tsecr) = timestamps(&packet).expect("every packet has timestamps");
        if packet.from_sender {
            assert_eq!(tsecr, recent, "data echoes the latest that arrived");
            data += 1;
        } else {
            assert!(u128::from(tsval) + 40_000 <= packet.at / 1_000, "40 ms earlier");
            recent = tsval;
        }
    }
    assert!(data > 1_000, "{data}");
    for packet in capture(&outcome, &scenario, CapturePoint::Receiver) {
        let now = (packet.at / 1_000) as u32;
        assert!(packet.from_sender || timestamps(&packet).is_some_and(|(tsval, _)| tsval == now));
    }
}

/// RFC 7323, section 3.2: segments have timestamps only if both SYNs have them.
#[test]
fn a_stack_without_timestamps_negotiates_none() {
    for (header, has, syn_length) in [(40, false, 52), (52, true, 60)] {
        let mut scenario = scenario();
        scenario.flows[0].stack.header = header;
        let outcome = scenario.run().expect("it runs");
        for packet in capture(&outcome, &scenario, CapturePoint::Sender) {
            assert_eq!(timestamps(&packet).is_some(), has);
            assert!(!packet.tcp.syn || 20 + packet.tcp.header_len() == syn_length);
        }
    }
}

#[test]
fn a_packet_marked_on_one_link_and_dropped_on_the_next_has_a_comment() {
    let mut scenario = scenario();
    let flow = &mut scenario.flows[0];
    (flow.stack.ecn, flow.bytes) = (Ecn::L4s, Some(600_000));
    flow.path.push("next".to_owned());
    (scenario.links[0].queue, scenario.links[0].loss) = (None, 0.0);
    let next = LinkSpec { name: "next".to_owned(), loss: 0.05, ..scenario.links[0].clone() };
    scenario.links[0].aqm = Some(AqmConfig::Step(StepConfig::default()));
    scenario.links.push(next);
    let outcome = scenario.run().expect("it runs");
    let marked = outcome.packets.records().iter().filter(|record| {
        matches!(record.event, PacketEvent::Dropped(..)) && record.packet.is_marked()
    });
    assert!(marked.count() > 0, "marked packets were dropped");
    let data = |point| {
        let mut packets = capture(&outcome, &scenario, point);
        packets.retain(|packet| packet.from_sender && packet.comment.is_none());
        packets.len()
    };
    // The flow is complete, so nothing is in flight.
    assert_eq!(data(CapturePoint::Sender), data(CapturePoint::Receiver));
}

#[test]
fn the_handshake_negotiates_ecn_by_its_flags() {
    let mut scenario = scenario();
    for (ecn, flags) in [
        (Ecn::Off, [(false, false), (false, false)]),
        (Ecn::Classic, [(true, true), (true, false)]),
        (Ecn::Accurate, [(true, true), (true, false)]),
    ] {
        scenario.flows[0].stack.ecn = ecn;
        let outcome = scenario.run().expect("it runs");
        let packets = capture(&outcome, &scenario, CapturePoint::Sender);
        let syns = packets.iter().filter(|packet| packet.tcp.syn);
        let found: Vec<_> = syns.map(|syn| (syn.tcp.ece, syn.tcp.cwr)).collect();
        assert_eq!(found, flags, "{ecn:?}");
    }
}

#[test]
fn only_flows_with_log_set_are_recorded() {
    let mut scenario = scenario();
    scenario.flows[0].log = false;
    assert!(scenario.run().expect("it runs").packets.records().is_empty());
}

/// The body of a packet's Multipath TCP option (RFC 8684), from its subtype on.
fn multipath_option(packet: &Captured) -> &[u8] {
    let mut options = packet.tcp.options.as_slice();
    loop {
        match options {
            [1, rest @ ..] => options = rest,
            [30, length, ..] => return &options[2..usize::from(*length)],
            [_, length, ..] => options = &options[usize::from(*length)..],
            _ => panic!("no such option"),
        }
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + N].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[test]
fn a_second_subflow_joins_with_the_token_of_the_receivers_key() {
    let scenario = over_two_paths();
    let outcome = scenario.run().expect("it runs");
    let sent = capture(&outcome, &scenario, CapturePoint::Sender);
    let syns: Vec<_> = sent.iter().filter(|packet| packet.tcp.syn).collect();
    let hosts: Vec<_> = syns.iter().map(|packet| packet.source).collect();
    assert_eq!(hosts, [[10, 0, 0, 0], [10, 1, 0, 0], [10, 2, 0, 0], [10, 3, 0, 0]]);
    let [capable, answer, join, joined] = [0, 1, 2, 3].map(|at| multipath_option(syns[at]));
    assert_eq!((capable, answer.len(), joined.len()), (&[0x01, 0x01][..], 2 + 8, 2 + 8 + 4));
    let token = &Sha256::digest(&answer[2..])[..4];
    assert_eq!((join[0], &join[2..6]), (0x10, token));
    let third = sent.iter().find(|p| p.source[1] == 2 && !p.tcp.syn).expect("an acknowledgement");
    assert_eq!((third.payload, multipath_option(third).len()), (0, 2 + 20));
    let first = sent.iter().find(|p| p.payload > 0).expect("data");
    let (key_a, key_b) = multipath_option(first)[2..18].split_at(8);
    let (nonce_a, nonce_b) = (&join[6..10], &joined[10..14]);
    let code = |keys: [&[u8]; 2], nonces: [&[u8]; 2]| {
        let mut code = Hmac::<Sha256>::new_from_slice(&keys.concat()).expect("any length");
        code.update(&nonces.concat());
        code.finalize().into_bytes()
    };
    assert_eq!(key_b, &answer[2..]);
    assert_eq!(joined[2..10], code([key_b, key_a], [nonce_b, nonce_a])[..8]);
    assert_eq!(multipath_option(third)[2..], code([key_a, key_b], [nonce_a, nonce_b])[..20]);
}

#[test]
fn data_numbers_of_both_subflows_cover_the_data_once_it_arrived() {
    let scenario = over_two_paths();
    let outcome = scenario.run().expect("it runs");
    let received = capture(&outcome, &scenario, CapturePoint::Receiver);
    let first = received.iter().find(|packet| packet.payload > 0).expect("data");
    let capable = multipath_option(first);
    assert_eq!((&capable[..2], capable.len()), (&[0x01, 0x01][..], 2 + 8 + 8 + 2));
    let initial = number::<8>(&Sha256::digest(&capable[2..10]), 24);
    let (mut end, mut paths) = (0, BTreeSet::new());
    let mut pieces = BTreeSet::from([(0, number::<2>(capable, 18))]);
    for packet in received.iter().filter(|packet| packet.payload > 0).skip(1) {
        let option = multipath_option(packet);
        if option[0] == 0x20 {
            assert_eq!(option[1], 0x0d, "a data acknowledgement, and a mapping of 8 bytes");
            assert_eq!(number::<4>(option, 14) as u32 + ISN, packet.tcp.sequence_number);
            assert_eq!(number::<2>(option, 18), packet.payload as u64);
            let at = number::<8>(option, 6).wrapping_sub(initial + 1);
            pieces.insert((at, at + packet.payload as u64));
            paths.insert(packet.source[1]);
        }
    }
    for (from, to) in pieces {
        assert!(from <= end, "a gap from {end} to {from}");
        end = end.max(to);
    }
    assert_eq!((end, paths), (3_000_001, [0, 2].into()));
    let mut acked = received.iter().filter(|packet| !packet.from_sender && !packet.tcp.syn);
    let last = multipath_option(acked.next_back().expect("acknowledgements"));
    let expected = initial.wrapping_add(1 + 3_000_001);
    assert_eq!((&last[..2], number::<8>(last, 2)), (&[0x20, 0x03][..], expected));
}

#[test]
fn udt_packets_are_captured_as_they_are_on_the_wire() {
    let json = r#"{"seed": 1, "duration_ns": 5000000000, "sample_ns": 1000000000,
        "links": [{"name": "bottleneck", "rate_bps": 10000000, "delay_ns": 20000000,
                    "queue": {"packets": 30}, "loss": 0.01}],
        "flows": [{"name": "logged", "cc": "udt", "path": ["bottleneck"], "log": true, "udt": {},
                   "return_delay_ns": 20000000, "bytes": 1000001}]}"#;
    let scenario = Scenario::from_json(json).expect("it is valid");
    let outcome = scenario.run().expect("it is valid");
    let mut file = Vec::new();
    outcome
        .packets
        .write_pcapng(CapturePoint::Receiver, &scenario, &mut file)
        .expect("memory takes all");
    let mut reader = PcapNgReader::new(file.as_slice()).expect("a section header");
    let (mut packets, mut bytes) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        let whole = with_payload(&packet);
        let headers = PacketHeaders::from_ip_slice(&whole).expect("an IP packet");
        let (Some(NetHeaders::Ipv4(ip, _)), Some(TransportHeader::Udp(udp))) =
            (headers.net, headers.transport)
        else {
            panic!("not UDP over IPv4");
        };
        let content = headers.payload.slice();
        assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, content).expect("it fits"));
        let datagram = codec::decode(content).expect("a UDT packet");
        if let Packet::Data(data) = datagram.packet {
            assert!(data.message.is_first() && data.message.is_last());
            bytes += usize::from(data.length);
        }
        packets.push((datagram.destination, datagram.packet));
    }
    let requests: Vec<_> = packets[..4]
        .iter()
        .map(|(destination, packet)| match packet {
            Packet::Handshake(handshake) => (*destination, handshake.request_type),
            other => panic!("{other:?}"),
        })
        .collect();
    let [ask, agree] = [RequestType::INDUCTION, RequestType::CONCLUSION];
    assert_eq!(requests, [(0, ask), (1, ask), (0, agree), (1, agree)]);
    assert!(bytes >= 1_000_001, "all of it arrived");
    assert!(packets.iter().any(|(_, packet)| matches!(packet, Packet::Nak(_))));
    assert_eq!(packets.last(), Some(&(2, Packet::Shutdown)));
}
