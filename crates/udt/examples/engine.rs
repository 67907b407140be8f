//! Two engines without I/O, whose packets are passed from one to the other.
//!
//! `cargo run --example engine`

use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    Config, Connection, Listener, ListenerAction, Mode, Packet, Role, Seq, TransportOptions,
};
use dumbbell_units::{Span, Time};

fn config(socket_id: u32) -> Result<Config, Box<dyn std::error::Error>> {
    let options = TransportOptions::default();
    let init = ConnectionConfig::new(Time::ZERO, u32::from(options.max_payload()));
    Ok(Config {
        algorithm: Algorithm::parse("udt", &init)?,
        options,
        mode: Mode::Stream,
        new_algorithm: None,
        bulk: None,
        keep_received: true,
        socket_id,
        connect_timeout: Some(Span::from_secs(5)),
        idle_timeout: Some(Span::from_secs(5)),
        crypto_overhead: 0,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut now = Time::ZERO;
    let listener = Listener::new(TransportOptions::default(), Mode::Stream, [7; 16]);
    let mut client = Connection::open(config(1)?, Role::Client, Seq::new(100), now);
    let mut server = None;
    let mut received = Vec::new();
    while received.len() < 5 {
        // The client's packets, whose payload the engine keeps until it is acknowledged.
        while let Some(packet) = client.poll(now) {
            let payload = client.payload(&packet).to_vec();
            match (&packet, &mut server) {
                (Packet::Handshake(handshake), None) => {
                    match listener.handle(now, b"the client's address", handshake) {
                        ListenerAction::Reply(reply) => {
                            client.receive(now, &Packet::Handshake(reply), &[]);
                        }
                        ListenerAction::Accept => {
                            server = Some(Connection::accept(config(2)?, handshake, now));
                        }
                        ListenerAction::Ignore => {}
                    }
                }
                (_, Some(server)) => server.receive(now, &packet, &payload),
                (_, None) => {}
            }
        }
        if client.is_open() && client.sender_stats().sent == 0 {
            client.send(now, b"hello")?;
            continue;
        }
        // The server's packets, here acknowledgements only.
        if let Some(server) = &mut server {
            while let Some(packet) = server.poll(now) {
                client.receive(now, &packet, &[]);
            }
            let mut buffer = [0; 100];
            let read = server.read(&mut buffer);
            received.extend_from_slice(&buffer[..read]);
        }
        now += Span::from_millis(1);
    }
    println!("{} after {} ms", String::from_utf8_lossy(&received), now.as_nanos() / 1_000_000);
    Ok(())
}
