//! Asynchronous sockets.

use crate::pattern::patient;
use dumbbell_udt::Mode;
use dumbbell_udt::io::{AsyncListener, AsyncSocket, Settings};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("there is a runtime")
        .block_on(test);
}

/// A connection: client and server.
async fn pair(settings: &Settings) -> (AsyncSocket, AsyncSocket) {
    let listener = AsyncListener::bind(ANY, settings).expect("there is a free port");
    let connecting = AsyncSocket::connect(listener.local_addr(), settings);
    let (client, server) = tokio::join!(connecting, listener.accept());
    (client.expect("it listens"), server)
}

#[test]
fn tasks_on_one_thread_exchange_a_stream() {
    run(async {
        let settings = patient();
        let (mut client, mut server) = pair(&settings).await;
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
        let (client, server) = pair(&settings).await;
        for length in [1, 1456, 100_000] {
            client.send_message(&vec![7; length], true).await.expect("it is sent");
            let message = server.recv_message().await.expect("no error");
            assert_eq!(message.map(|message| message.len()), Some(length));
        }
        drop(client);
        assert_eq!(server.recv_message().await.expect("it ends well"), None);
    });
}

/// Waits until a task that was spawned before waits for its event.
async fn begun() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn shutting_down_wakes_the_task_that_reads() {
    run(async {
        let (client, server) = pair(&patient()).await;
        let (mut reading, mut writing) = tokio::io::split(client);
        let reader = tokio::spawn(async move { reading.read_u8().await });
        begun().await;
        // The shutdown waits too: for the acknowledgement of this.
        writing.write_all(&[7; 100_000]).await.expect("it is sent");
        let writer = tokio::spawn(async move { writing.shutdown().await });
        writer.await.expect("no panic").expect("all is acknowledged");
        let read = reader.await.expect("no panic");
        assert!(read.is_err_and(|why| why.kind() == std::io::ErrorKind::NotConnected));
        drop(server);
    });
}

#[test]
fn data_wakes_every_task_that_reads() {
    run(async {
        let settings = Settings { mode: Mode::Message, ..patient() };
        let (client, server) = pair(&settings).await;
        let server = Arc::new(server);
        let reading = [0, 1, 2].map(|_| {
            let server = server.clone();
            tokio::spawn(async move { server.recv_message().await })
        });
        begun().await;
        for number in 0..3 {
            client.send_message(&[number], true).await.expect("it is sent");
        }
        let mut received = Vec::new();
        for reader in reading {
            received
                .extend(reader.await.expect("no panic").expect("no error").expect("it is open"));
        }
        received.sort_unstable();
        assert_eq!(received, [0, 1, 2]);
    });
}

#[test]
fn connections_wake_every_task_that_accepts() {
    run(async {
        let settings = patient();
        let listener = AsyncListener::bind(ANY, &settings).expect("there is a free port");
        let (address, listener) = (listener.local_addr(), Arc::new(listener));
        let accepting = [0, 1].map(|_| {
            let listener = listener.clone();
            tokio::spawn(async move { listener.accept().await })
        });
        begun().await;
        let connect = || AsyncSocket::connect(address, &settings);
        let clients = tokio::join!(connect(), connect());
        for accepted in accepting {
            accepted.await.expect("no panic");
        }
        assert!(clients.0.is_ok() && clients.1.is_ok());
    });
}

#[test]
fn a_read_into_no_bytes_does_not_wait() {
    run(async {
        let (mut client, server) = pair(&patient()).await;
        assert_eq!(client.read(&mut []).await.expect("it is open"), 0);
        drop(server);
    });
}
