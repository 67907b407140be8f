//! Agreement on a key, and what is accepted afterwards.

use super::*;
use crate::io::settings::Settings;
use crate::seq::Seq;
use dumbbell_net::Endpoint;

#[test]
fn a_counter_is_accepted_once_in_any_order() {
    let mut window = ReplayWindow::default();
    let accepted: Vec<bool> =
        [0, 2, 1, 1, 2, 200, 150, 150, 100].map(|counter| window.accept(counter)).into();
    assert_eq!(accepted, [true, true, true, false, false, true, true, false, false]);
}

#[test]
fn the_noise_handshake_fails_with_another_key() {
    let mut first = CryptoState::new(Some(&Key::new([1; 32])));
    first.begin(Time::ZERO, PROLOGUE);
    let message = first.poll(Time::ZERO).map(|(_, message)| message.to_vec());
    let message = message.expect("the first one speaks");
    for (key, agrees) in [([2; 32], false), ([1; 32], true)] {
        let mut second = CryptoState::new(Some(&Key::new(key)));
        second.on_noise_message(Some(PROLOGUE), &message);
        assert_eq!(second.is_ready(), agrees);
    }
}

/// Both ends of an established rendezvous. The numbers are socket ids and initial sequence numbers.
fn rendezvous(numbers: [(u32, u32); 2]) -> [Connection; 2] {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut ends = numbers.map(|(id, isn)| {
        let config = Settings::default().config(Time::ZERO, id, address).expect("it is valid");
        Connection::open(config, Role::Rendezvous, Seq::new(isn), Time::ZERO)
    });
    while !ends.iter().all(Connection::is_open) {
        let sent = ends.each_mut().map(|end| end.poll(Time::ZERO));
        for (end, packet) in ends.iter_mut().zip(sent.into_iter().rev()) {
            packet.inspect(|packet| end.receive(Time::ZERO, packet, &[]));
        }
    }
    ends
}

#[test]
fn a_message_of_another_rendezvous_is_not_accepted() {
    let key = Key::new([1; 32]);
    let [one, other] = rendezvous([(1, 10), (2, 20)]);
    let mut first = CryptoState::new(Some(&key));
    first.begin(Time::ZERO, &rendezvous_prologue(&other).expect("it is established"));
    let message = first.poll(Time::ZERO).map(|(_, message)| message.to_vec());
    let message = message.expect("the first one speaks");
    let packet = user(NOISE_HANDSHAKE, message.len());
    let mut bytes = Vec::new();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    codec::encode(&packet, 1, address, &message, &mut bytes);
    // A third party repeats it to a later rendezvous of this end.
    let [later, _] = rendezvous([(1, 11), (2, 20)]);
    for (engine, agrees) in [(&one, true), (&later, false)] {
        let mut second = CryptoState::new(Some(&key));
        let datagram = codec::decode(&bytes).expect("it is a packet");
        second.decrypt(engine, datagram, &mut Vec::new());
        assert_eq!(second.is_ready(), agrees);
    }
}
