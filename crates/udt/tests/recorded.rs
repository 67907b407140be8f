//! Packets recorded from libudt 4.11 on loopback: they decode as expected and encode to the same bytes.

use dumbbell_udt::{
    Ack, AckKind, DataHeader, Handshake, MessageNumber, MessagePart, Nak, Packet, RequestType, Seq,
    codec,
};
use std::net::{IpAddr, Ipv4Addr};

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits");
    hex.split_whitespace().map(byte).collect()
}

/// Decodes a packet to `destination`, and checks that it encodes to the same bytes.
fn recorded(hex: &str, destination: u32) -> Packet {
    let bytes = bytes(hex);
    let datagram = codec::decode(&bytes).expect("libudt sent it");
    assert_eq!(datagram.destination, destination);
    let mut again = Vec::new();
    let to = IpAddr::V4(Ipv4Addr::LOCALHOST);
    codec::encode(&datagram.packet, destination, to, datagram.payload, &mut again);
    assert_eq!(again, bytes);
    datagram.packet
}

#[test]
fn the_first_request_of_a_client() {
    let packet = recorded(
        "80 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 04 00 00 00 02 04 a3 4b 28 \
         00 00 05 dc 00 00 20 00 00 00 00 01 0c b2 62 53 00 00 00 00 01 00 00 7f 00 00 00 00 \
         00 00 00 00 00 00 00 00",
        0,
    );
    let expected = Handshake {
        version: 4,
        socket_type: 2,
        isn: Seq::new(0x04a3_4b28),
        mss: 1500,
        window: 8192,
        request_type: RequestType::INDUCTION,
        socket_id: 0x0cb2_6253,
        cookie: 0,
    };
    assert_eq!(packet, Packet::Handshake(expected));
}

#[test]
fn the_response_of_a_listener_with_a_cookie() {
    let packet = recorded(
        "80 00 00 00 00 00 00 00 00 00 00 00 00 00 10 92 00 00 00 04 00 00 00 01 7f ff fd 78 \
         00 00 05 dc 00 00 20 00 00 00 00 01 00 00 10 92 24 7e d9 44 01 00 00 7f 00 00 00 00 \
         00 00 00 00 00 00 00 00",
        4242,
    );
    let Packet::Handshake(answer) = packet else { panic!("{packet:?}") };
    assert_eq!((answer.socket_id, answer.request_type), (4242, RequestType::INDUCTION));
    assert_eq!((answer.isn, answer.cookie), (Seq::new(0x7fff_fd78), 0x247e_d944));
}

#[test]
fn a_full_and_a_short_ack() {
    let full = recorded(
        "80 02 00 00 00 00 00 01 00 00 00 00 00 00 10 92 7f ff fd 88 00 01 86 a0 00 00 c3 50 \
         00 00 1f ef 00 03 d0 90 00 00 03 e8",
        4242,
    );
    let expected = Ack {
        number: 1,
        next: Seq::new(0x7fff_fd88),
        rtt_us: 100_000,
        rtt_var_us: 50_000,
        window: 8175,
        arrival_rate: 250_000,
        capacity: 1000,
    };
    assert_eq!(full, Packet::Ack(AckKind::Full, expected));
    let short = recorded(
        "80 02 00 00 00 00 00 02 00 00 00 00 00 00 10 92 7f ff fd 9b 00 01 55 db 00 00 f4 06 \
         00 00 1f dc",
        4242,
    );
    let expected = Ack {
        number: 2,
        next: Seq::new(0x7fff_fd9b),
        rtt_us: 87_515,
        rtt_var_us: 62_470,
        window: 8156,
        ..Ack::default()
    };
    assert_eq!(short, Packet::Ack(AckKind::Short, expected));
}

#[test]
fn a_nak_of_one_packet() {
    let packet = recorded("80 03 00 00 00 00 00 00 00 00 00 00 00 00 10 92 7f ff ff 58", 4242);
    let mut expected = Nak::default();
    assert!(expected.push(Seq::new(0x7fff_ff58), Seq::new(0x7fff_ff58)));
    assert_eq!(packet, Packet::Nak(expected));
}

#[test]
fn an_ack2_and_a_shutdown() {
    let ack2 = "80 06 00 00 00 00 00 01 00 00 00 00 00 00 03 09 00 00 00 00";
    assert_eq!(recorded(ack2, 777), Packet::Ack2 { number: 1 });
    let shutdown = "80 05 00 00 00 00 00 00 00 00 00 00 00 00 03 09 00 00 00 00";
    assert_eq!(recorded(shutdown, 777), Packet::Shutdown);
}

#[test]
fn the_first_packet_of_a_message() {
    // Without its payload.
    let packet = recorded("04 a3 4b 28 a0 00 00 01 00 00 07 e0 00 00 03 09", 777);
    let message = MessagePart::new(MessageNumber::FIRST, true, false, true);
    let seq = Seq::new(0x04a3_4b28);
    assert_eq!(packet, Packet::Data(DataHeader { seq, message, timestamp: 2016, length: 0 }));
}
