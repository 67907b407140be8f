//! Asynchronous sockets.

use crate::pattern::patient;
use dumbbell_udt::Mode;
use dumbbell_udt::io::{AsyncListener, AsyncSocket, Settings};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("there is a runtime")
        .block_on(test);
}

#[test]
fn tasks_on_one_thread_exchange_a_stream() {
    run(async {
        let settings = patient();
        let listener = AsyncListener::bind(ANY, &settings).expect("there is a free port");
        let (client, server) =
            tokio::join!(AsyncSocket::connect(listener.local_addr(), &settings), listener.accept());
        let (mut client, mut server) = (client.expect("it listens"), server);
        let data: Vec<u8> = (0..20_000_000u32).map(|i| (i >> 7) as u8).collect();
        let sending = async {
            client.write_all(&data).await.expect("it is sent");
            client.shutdown().await.expect("all arrives");
        };
        let mut received = Vec::new();
        let (_, read) = tokio::join!(sending, server.read_to_end(&mut received));
        assert_eq!(read.expect("it ends well"), data.len());
        assert!(received == data);
    });
}

#[test]
fn tasks_on_one_thread_exchange_messages() {
    run(async {
        let settings = Settings { mode: Mode::Message, ..patient() };
        let listener = AsyncListener::bind(ANY, &settings).expect("there is a free port");
        let (client, server) =
            tokio::join!(AsyncSocket::connect(listener.local_addr(), &settings), listener.accept());
        let client = client.expect("it listens");
        for length in [1, 1456, 100_000] {
            client.send_message(&vec![7; length], true).await.expect("it is sent");
            let message = server.recv_message().await.expect("no error");
            assert_eq!(message.map(|message| message.len()), Some(length));
        }
        drop(client);
        assert_eq!(server.recv_message().await.expect("it ends well"), None);
    });
}
