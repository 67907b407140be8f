use super::*;
use crate::packet::{
    Ack, AckKind, DropRequest, Handshake, IP_UDP_HEADER, RequestType, UserDefined,
};
use crate::seq::MessageNumber;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const TO: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));

fn encoded(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(packet, 0x0102_0304, TO, payload, &mut out);
    out
}

fn seq() -> impl Strategy<Value = Seq> {
    (0..=Seq::MAX.get()).prop_map(Seq::new)
}

fn ack() -> impl Strategy<Value = Packet> {
    let kind = prop_oneof![Just(AckKind::Light), Just(AckKind::Short), Just(AckKind::Full)];
    (kind, any::<u32>(), seq(), any::<[u32; 5]>()).prop_map(|(kind, number, next, words)| {
        let [rtt_us, rtt_var_us, window, arrival_rate, capacity] = words;
        let light = Ack { number, next, ..Ack::default() };
        let short = Ack { rtt_us, rtt_var_us, window, ..light };
        Packet::Ack(
            kind,
            match kind {
                AckKind::Light => light,
                AckKind::Short => short,
                AckKind::Full => Ack { arrival_rate, capacity, ..short },
            },
        )
    })
}

fn handshake() -> impl Strategy<Value = Packet> {
    (any::<[u8; 2]>(), seq(), any::<[u32; 4]>(), any::<i32>()).prop_map(
        |([version, mode], isn, [mss, window, socket, cookie], request)| {
            let request = RequestType(request);
            let packet = Handshake {
                version,
                socket_type: mode,
                isn,
                mss,
                window,
                request_type: request,
                socket_id: socket,
                cookie,
            };
            Packet::Handshake(packet)
        },
    )
}

fn nak() -> impl Strategy<Value = Packet> {
    prop::collection::vec((seq(), 0u64..1000), 1..4).prop_map(|ranges| {
        let mut nak = Nak::default();
        for (first, more) in ranges {
            nak.push(first, first.plus(more));
        }
        Packet::Nak(nak)
    })
}

/// An arbitrary packet and its payload.
fn packet() -> impl Strategy<Value = (Packet, Vec<u8>)> {
    let payload = prop::collection::vec(any::<u8>(), 0..100);
    let data = (seq(), any::<u32>(), any::<u32>(), payload.clone());
    let user = (any::<u16>(), any::<u32>(), payload);
    let drop = (0u32..1 << 29, seq(), seq());
    prop_oneof![
        data.prop_map(|(seq, message, timestamp, payload)| {
            let (message, length) = (MessagePart::from_word(message), payload.len() as u16);
            (Packet::Data(DataHeader { seq, message, timestamp, length }), payload)
        }),
        user.prop_map(|(kind, info, payload)| {
            (Packet::UserDefined(UserDefined { kind, info, length: payload.len() as u16 }), payload)
        }),
        prop_oneof![
            handshake(),
            ack(),
            nak(),
            drop.prop_map(|(message, first, last)| {
                let message = MessageNumber::new(message);
                Packet::DropRequest(DropRequest { message, first, last })
            }),
            any::<u32>().prop_map(|number| Packet::Ack2 { number }),
            any::<u32>().prop_map(|code| Packet::PeerError { code }),
            Just(Packet::KeepAlive),
            Just(Packet::CongestionWarning),
            Just(Packet::Shutdown),
        ]
        .prop_map(|packet| (packet, Vec::new())),
    ]
}

proptest! {
    #[test]
    fn every_packet_survives_encoding_and_decoding((packet, payload) in packet()) {
        let bytes = encoded(&packet, &payload);
        prop_assert_eq!(bytes.len() as u32, packet.size() - IP_UDP_HEADER);
        let datagram = decode(&bytes).expect("it was encoded");
        prop_assert_eq!(datagram.destination, 0x0102_0304);
        prop_assert_eq!(datagram.payload, &payload[..]);
        prop_assert_eq!(datagram.packets().collect::<Vec<_>>(), vec![packet]);
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(datagram) = decode(&bytes) {
            let words = datagram.packets().filter_map(|packet| match packet {
                Packet::Nak(nak) => Some(nak.words().len()),
                _ => None,
            });
            prop_assert!(words.sum::<usize>() <= bytes.len() / 4);
        }
    }

    #[test]
    fn a_long_nak_is_decoded_completely(
        ranges in prop::collection::vec((seq(), prop_oneof![Just(0u64), 1u64..1000]), 1..200),
    ) {
        let mut words = Vec::new();
        for &(first, more) in &ranges {
            let mut nak = Nak::default();
            nak.push(first, first.plus(more));
            words.extend_from_slice(nak.words());
        }
        let mut bytes = encoded(&Packet::Nak(Nak::default()), &[]);
        put(&mut bytes, &words);
        let datagram = decode(&bytes).expect("it is a report");
        let naks: Vec<Nak> = datagram
            .packets()
            .map(|packet| match packet {
                Packet::Nak(nak) => nak,
                other => panic!("{other:?}"),
            })
            .collect();
        let decoded: Vec<_> = naks.iter().flat_map(Nak::ranges).collect();
        let expected: Vec<_> =
            ranges.iter().map(|&(first, more)| (first, first.plus(more))).collect();
        prop_assert_eq!(decoded, expected);
        prop_assert!(!naks[0].continued && naks[1..].iter().all(|nak| nak.continued));
        // The parts encode to the same datagram.
        let mut again = encoded(&Packet::Nak(naks[0]), &[]);
        naks[1..].iter().for_each(|nak| append_nak(nak, &mut again));
        prop_assert_eq!(again, bytes);
    }
}

#[test]
fn a_handshake_is_as_libudt_sends_it() {
    let packet = Packet::Handshake(Handshake {
        version: 4,
        socket_type: 1,
        isn: Seq::new(0x1122_3344),
        mss: 1500,
        window: 8192,
        request_type: RequestType::CONCLUSION,
        socket_id: 0x0a0b_0c0d,
        cookie: 0xdead_beef,
    });
    #[rustfmt::skip]
    let expected = [
        0x80, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  1, 2, 3, 4,
        0, 0, 0, 4,  0, 0, 0, 1,  0x11, 0x22, 0x33, 0x44,  0, 0, 0x05, 0xdc,
        0, 0, 0x20, 0,  0xff, 0xff, 0xff, 0xff,  0x0a, 0x0b, 0x0c, 0x0d,  0xde, 0xad, 0xbe, 0xef,
        // 10.77.0.2, bytes reversed.
        0x02, 0x00, 0x4d, 0x0a,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
    ];
    assert_eq!(encoded(&packet, &[]), expected);
}

#[test]
fn a_message_of_one_packet_has_both_boundary_flags() {
    let message = MessagePart::new(MessageNumber::new(7), true, true, true);
    let data = DataHeader { seq: Seq::new(5), message, timestamp: 9, length: 2 };
    let bytes = encoded(&Packet::Data(data), b"hi");
    assert_eq!(bytes, [0, 0, 0, 5, 0xe0, 0, 0, 7, 0, 0, 0, 9, 1, 2, 3, 4, b'h', b'i']);
}

#[test]
fn control_packets_without_padding_are_accepted() {
    let bytes = encoded(&Packet::Ack2 { number: 77 }, &[]);
    assert_eq!(decode(&bytes[..16]).map(|d| d.packet), Ok(Packet::Ack2 { number: 77 }));
}

#[test]
fn a_truncated_packet_is_an_error() {
    let bytes = encoded(&Packet::KeepAlive, &[]);
    let error = DecodeError::TooShort { kind: None, needed: 16, found: 15 };
    assert_eq!(decode(&bytes[..15]), Err(error));
    let drop = DropRequest { message: MessageNumber::FIRST, first: Seq::new(1), last: Seq::new(2) };
    let bytes = encoded(&Packet::DropRequest(drop), &[]);
    let error = DecodeError::TooShort { kind: Some(7), needed: 8, found: 7 };
    assert_eq!(decode(&bytes[..23]), Err(error));
}

#[test]
fn control_packet_type_9_is_unknown() {
    let mut bytes = encoded(&Packet::KeepAlive, &[]);
    bytes[1] = 9;
    assert_eq!(decode(&bytes), Err(DecodeError::UnknownType(9)));
}
