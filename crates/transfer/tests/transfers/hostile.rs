//! Peers that do not keep to the protocol, or use it against the other side.

use crate::harness::*;
use dumbbell_transfer::{
    ReceiveLimits, RetryPolicy, ServerConfig, TransferError, TransferMonitor, pull, push, serve,
};
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A peer that sends and receives frames as it likes.
struct Peer(Socket);

impl Peer {
    /// Connects to a server and requests something of it.
    fn requesting(server: &Server, want: &str) -> Peer {
        let peer = Peer(Socket::connect(&server.address[..], &settings()).expect("it listens"));
        peer.say(&format!(r#"{{"version":2,"ack_interval":0,"want":{want}}}"#));
        assert!(peer.hear().contains("ready"));
        peer
    }

    fn say(&self, message: &str) {
        self.frame(message.len() as u32, message.as_bytes());
    }

    fn frame(&self, head: u32, body: &[u8]) {
        // The other side may have closed the connection.
        let _ = self.0.send_all(&[&head.to_be_bytes(), body].concat());
    }

    /// The next message; empty at the end of the connection.
    fn hear(&self) -> String {
        let mut head = [0; 4];
        if !self.read(&mut head) {
            return String::new();
        }
        let mut body = vec![0; u32::from_be_bytes(head) as usize];
        self.read(&mut body);
        String::from_utf8(body).expect("it is JSON")
    }

    fn read(&self, mut out: &mut [u8]) -> bool {
        while !out.is_empty() {
            match self.0.recv(out) {
                Ok(0) | Err(_) => return false,
                Ok(read) => out = &mut out[read..],
            }
        }
        true
    }

    fn give(&self, data: &[u8]) {
        self.frame(data.len() as u32 | 1 << 31, data);
    }

    fn offer_folder(&self, path: &str) {
        self.say(&format!(
            r#"{{"entry":{{"path":"{path}","size":null,"modified":1,"mode":493}}}}"#
        ));
    }

    fn offer(&self, path: &str, size: u64, modified: u64) {
        let path = serde_json::to_string(path).expect("it is text");
        self.say(&format!(
            r#"{{"entry":{{"path":{path},"size":{size},"modified":{modified},"mode":493}}}}"#
        ));
    }
}

/// The hash of an empty file.
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// Asks for `path` of a server that answers by offering `offers`, each of an empty file.
fn pull_from_false_server(path: &str, into: &Path, offers: &[&str]) -> Result<(), TransferError> {
    let listener = Listener::bind("127.0.0.1:0", &settings()).expect("there is a port");
    let address = listener.local_addr().to_string();
    thread::scope(|scope| {
        scope.spawn(|| {
            let peer = Peer(listener.accept(None).expect("it connects"));
            peer.hear();
            peer.say(r#"{"ready":{"ack_interval":0}}"#);
            for offer in offers {
                peer.offer(offer, 0, 1);
                if !peer.hear().contains("have") {
                    return;
                }
                peer.say(r#"{"begin":0}"#);
                peer.say(&format!(r#"{{"end":"{EMPTY}"}}"#));
            }
            peer.say(r#""over""#);
            peer.hear();
        });
        let paths = [path.to_owned()];
        let monitor = Arc::new(TransferMonitor::new());
        pull(&address, &paths, into, ANY, &settings(), quick(), &monitor)
    })
}

#[test]
fn a_client_accepts_only_what_it_requested() {
    for offer in [".ssh/authorized_keys", ".profile", "holiday.jpg2", "holiday.jpg/../.profile"] {
        let here = folder();
        write(&here.path().join(".profile"), b"own");
        let done = pull_from_false_server("photos/holiday.jpg", here.path(), &[offer]);
        assert!(matches!(done, Err(TransferError::Protocol(_))), "{offer}: {done:?}");
        assert_eq!(names(here.path()), [".profile"]);
        assert_eq!(fs::read(here.path().join(".profile")).ok(), Some(b"own".to_vec()));
    }
    let here = folder();
    let offers = ["holiday.jpg", "holiday.jpg"];
    let done = pull_from_false_server("photos/holiday.jpg", here.path(), &offers[..1]);
    assert!(done.is_ok(), "{done:?}");
}

#[test]
fn a_requested_file_that_does_not_come_is_an_error() {
    let here = folder();
    let done = pull_from_false_server("holiday.jpg", here.path(), &[]);
    let Err(TransferError::Missing(missing)) = &done else { panic!("{done:?}") };
    assert_eq!(missing, &["holiday.jpg"]);
}

#[test]
fn offers_without_data_write_nothing() {
    let there = folder();
    let victim = data(1_000_000, 1);
    write(&there.path().join("victim"), &victim);
    let server = Server::of(there.path(), &settings());
    for client in 0..3 {
        let peer = Peer::requesting(&server, r#""push""#);
        for offer in 0..32 {
            peer.offer("victim", victim.len() as u64, client * 100 + offer);
            assert!(peer.hear().contains("1000000"), "the file is hashed where it is");
            peer.offer(&format!("new/{offer}"), 1 << 40, 1);
            assert!(peer.hear().contains("have"));
        }
        drop(peer);
    }
    assert_eq!(names(there.path()), ["victim"]);
    assert_eq!(fs::read(there.path().join("victim")).ok(), Some(victim));
}

/// A file of 1 TB, which takes minutes to be hashed, and no room.
fn write_endless(path: &Path) {
    fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("there are sparse files");
}

/// Waits for an event of a server with this text.
fn wait_for(server: &Server, text: &str) {
    while !server.monitor.take_events().iter().any(|event| event.contains(text)) {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn hashing_ends_when_the_server_is_stopped_or_the_client_is_gone() {
    let there = folder();
    write_endless(&there.path().join("file"));
    for is_offered in [true, false] {
        let ask = |server: &Server| {
            if is_offered {
                let peer = Peer::requesting(server, r#""push""#);
                peer.offer("file", 1 << 40, 1);
                return peer;
            }
            let peer = Peer::requesting(server, r#"{"pull":["file"]}"#);
            assert!(peer.hear().contains("entry"));
            peer.say(&format!(r#"{{"have":{{"bytes":{},"hash":"0"}}}}"#, 1u64 << 40));
            peer
        };
        let server = Server::of(there.path(), &settings());
        drop(ask(&server));
        wait_for(&server, &Error::PeerClosed.to_string());
        let _peer = ask(&server);
        thread::sleep(Duration::from_millis(100));
        server.monitor.stop();
        wait_for(&server, "the transfer was stopped");
    }
}

#[test]
fn a_client_that_may_only_send_learns_no_hash_of_a_file() {
    let (here, there) = (folder(), folder());
    let secret = b"pin=4711";
    write(&there.path().join("file"), secret);
    let config = ServerConfig { allow_pull: false, ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings(), config);
    let peer = Peer::requesting(&server, r#""push""#);
    peer.offer("file", secret.len() as u64, 1);
    assert_eq!(peer.hear(), r#"{"have":{"bytes":0,"hash":null}}"#);
    // The same content is transferred again.
    let file = [write(&here.path().join("file"), secret)];
    push(&server.address, &file, None, &settings(), quick(), &Arc::default()).expect("it arrives");
    assert_eq!(fs::read(there.path().join("file")).ok(), Some(secret.to_vec()));
}

#[test]
fn a_part_in_use_outlives_the_end_of_another_transfer_of_its_file() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), &data(1000, 1))];
    let server = Server::of(there.path(), &settings());
    let peer = Peer::requesting(&server, r#""push""#);
    let own = data(2000, 2);
    peer.offer("file", 2000, 1);
    assert!(peer.hear().contains("have"));
    peer.say(r#"{"begin":0}"#);
    peer.give(&own[..1000]);
    while names(there.path()).is_empty() {
        thread::yield_now();
    }
    push(&server.address, &file, None, &settings(), quick(), &Arc::default()).expect("it arrives");
    assert_eq!(fs::read(there.path().join("file")).ok(), Some(data(1000, 1)));
    peer.give(&own[1000..]);
    peer.say(&format!(r#"{{"end":"{}"}}"#, blake3::hash(&own).to_hex()));
    peer.say(r#""over""#);
    assert_eq!(peer.hear(), r#"{"done":[]}"#);
    assert_eq!(fs::read(there.path().join("file")).ok(), Some(own));
    assert_eq!(names(there.path()), ["file"]);
}

#[test]
fn a_part_that_is_gone_at_the_end_is_received_again() {
    let there = folder();
    let server = Server::of(there.path(), &settings());
    let peer = Peer::requesting(&server, r#""push""#);
    peer.offer("file", 1000, 1);
    assert!(peer.hear().contains("have"));
    peer.say(r#"{"begin":0}"#);
    peer.give(&data(500, 1));
    let part = loop {
        if let Some(part) = names(there.path()).pop() {
            break there.path().join(part);
        }
    };
    fs::remove_file(&part).expect("it is ours");
    fs::write(&part, b"another's").expect("there is room");
    peer.give(&data(1000, 1)[500..]);
    peer.say(&format!(r#"{{"end":"{}"}}"#, blake3::hash(&data(1000, 1)).to_hex()));
    assert!(peer.hear().starts_with(r#"{"busy":"the partial file of file was removed"#));
    assert!(!there.path().join("file").exists());
}

#[test]
fn a_client_has_at_most_64_open_offers() {
    let there = folder();
    let server = Server::of(there.path(), &settings());
    let peer = Peer::requesting(&server, r#""push""#);
    for offer in 0..65 {
        peer.offer(&format!("file{offer}"), 1, 1);
        let answer = peer.hear();
        assert_eq!(answer.contains("have"), offer < 64, "{answer}");
    }
}

#[test]
fn new_folders_and_empty_files_count_against_the_limits() {
    let start = |limits| {
        let there = folder();
        let config = ServerConfig { limits, ..patient() };
        (Server::start(there.path(), &free_address(), &settings(), config), there)
    };
    for limits in [
        ReceiveLimits { max_bytes: 40_960, ..ANY },
        ReceiveLimits { keep_free: u64::MAX / 2, ..ANY },
    ] {
        let (server, there) = start(limits);
        let peer = Peer::requesting(&server, r#""push""#);
        peer.offer_folder(&["a"; 256].join("/"));
        assert!(peer.hear().contains("refused"));
        assert_eq!(names(there.path()), [""; 0]);
    }
    let (server, there) = start(ReceiveLimits { max_bytes: 40_960, ..ANY });
    let peer = Peer::requesting(&server, r#""push""#);
    peer.offer_folder("in");
    let refusal = (0..100).find_map(|file| {
        peer.offer(&format!("in/{file}"), 0, 1);
        let answer = peer.hear();
        peer.say(r#"{"begin":0}"#);
        peer.say(&format!(r#"{{"end":"{EMPTY}"}}"#));
        answer.contains("refused").then_some(answer)
    });
    assert!(refusal.is_some_and(|why| why.contains("max-bytes")));
    assert_eq!(names(&there.path().join("in")).len(), 9);
}

#[test]
fn a_transfer_with_too_many_damaged_files_ends() {
    let there = folder();
    let server = Server::of(there.path(), &settings());
    let peer = Peer::requesting(&server, r#""push""#);
    let long = vec!["a".repeat(250); 200].join("/");
    let refusal = (0..10).find_map(|number| {
        peer.offer(&format!("{long}/{number}"), 5, 1);
        let answer = peer.hear();
        peer.say(r#"{"begin":0}"#);
        peer.say(r#""failed""#);
        answer.contains("refused").then_some(answer)
    });
    assert_eq!(refusal.as_deref(), Some(r#"{"refused":"6 files are damaged"}"#));
}

#[test]
fn a_server_that_falls_silent_or_reads_nothing_is_left() {
    let here = folder();
    let file = [write(&here.path().join("file"), &data(30_000_000, 1))];
    let policy = RetryPolicy { max_retries: 0, max_silence: Duration::from_millis(300), ..quick() };
    for answers in [&[][..], &[r#"{"have":{"bytes":0,"hash":null}}"#]] {
        let listener = Listener::bind("127.0.0.1:0", &settings()).expect("there is a port");
        let address = listener.local_addr().to_string();
        thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let peer = Peer(listener.accept(None).expect("it connects"));
                peer.hear();
                peer.say(r#"{"ready":{"ack_interval":0}}"#);
                answers.iter().for_each(|answer| peer.say(answer));
                peer
            });
            let done = push(&address, &file, None, &settings(), policy, &Arc::default());
            assert!(
                matches!(done, Err(TransferError::At { error: Error::TimedOut, .. })),
                "{done:?}"
            );
            drop(serving.join());
        });
    }
}

#[test]
fn a_client_that_reads_nothing_is_left() {
    let there = folder();
    write(&there.path().join("file"), &data(30_000_000, 1));
    let config = ServerConfig { max_silence: Duration::from_millis(300), ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings(), config);
    let peer = Peer::requesting(&server, r#"{"pull":["file"]}"#);
    assert!(peer.hear().contains("entry"));
    peer.say(r#"{"have":{"bytes":0,"hash":null}}"#);
    let ended = loop {
        if let Some(event) = server.monitor.take_events().pop() {
            break event;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.contains(&Error::TimedOut.to_string()), "{ended}");
}

#[test]
fn offers_expire_if_their_client_falls_silent() {
    let there = folder();
    let config = ServerConfig { max_silence: Duration::from_millis(300), ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings(), config);
    let peer = Peer::requesting(&server, r#""push""#);
    peer.offer("file", 1000, 1);
    assert!(peer.hear().contains("have"));
    assert_eq!(peer.hear(), "", "the server has closed the connection");
}

#[test]
fn names_with_control_characters_are_rejected_and_escaped() {
    let there = folder();
    let server = Server::of(there.path(), &settings());
    let peer = Peer::requesting(&server, r#""push""#);
    peer.offer("esc\x1b]0;PWNED\x07\nfake 1.2.3.4:9: received 7 files", 0, 1);
    let refusal = peer.hear();
    assert!(refusal.contains("refused") && !refusal.contains('\x1b'), "{refusal}");
    let event = loop {
        if let Some(event) = server.monitor.take_events().pop() {
            break event;
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(event.contains("PWNED") && !event.contains(char::is_control), "{event:?}");
    assert_eq!(names(there.path()), [""; 0]);
}

#[test]
fn a_reason_of_a_peer_is_shown_without_escape_sequences() {
    let listener = Listener::bind("127.0.0.1:0", &settings()).expect("there is a port");
    let address = listener.local_addr().to_string();
    let here = folder();
    let file = [write(&here.path().join("file"), b"x")];
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let peer = Peer(listener.accept(None).expect("it connects"));
            peer.hear();
            peer.say(r#"{"refused":"\u001b]0;PWNED\u0007\u001b[2J"}"#);
            peer.hear();
        });
        push(&address, &file, None, &settings(), quick(), &Arc::default()).expect_err("it refuses")
    });
    let shown = error.to_string();
    assert!(shown.contains("PWNED") && !shown.contains(char::is_control), "{shown:?}");
}

#[test]
fn strangers_do_not_end_a_server_for_one_client() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), &data(10_000, 9))];
    let once = ServerConfig { once: true, allow_bench: false, allow_pull: false, ..patient() };
    let mut server = Server::start(there.path(), &free_address(), &settings(), once);
    let connect = || Socket::connect(&server.address[..], &settings()).expect("it listens");
    let garbage = connect();
    garbage.send_all(b"\0\0\0\x05hello").expect("it is open");
    let bench = Peer(connect());
    bench.say(r#"{"version":2,"ack_interval":0,"want":"bench"}"#);
    assert!(bench.hear().contains("refused"));
    let offering = Peer::requesting(&server, r#""push""#);
    offering.offer("../x", 1, 1);
    // It connects, requests, and stays.
    let staying = Peer::requesting(&server, r#""push""#);
    push(&server.address, &file, None, &settings(), quick(), &Arc::default()).expect("it arrives");
    let ended = server.thread.take().expect("it runs").join().expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    let progress = server.monitor.progress();
    assert_eq!((progress.bytes, &progress.names[..]), (10_000, &[("file".to_owned(), 1)][..]));
    drop(staying);
}

#[test]
fn without_a_key_a_server_is_for_this_host_only() {
    let there = folder();
    let start = |config, settings: &Settings| {
        let monitor = Arc::new(TransferMonitor::new());
        monitor.stop();
        let ended = serve(there.path(), "0.0.0.0:0", settings, config, &monitor);
        (ended.expect_err("it was stopped"), monitor.take_events().len())
    };
    let (refused, _) = start(patient(), &settings());
    assert!(matches!(refused, TransferError::Insecure(_)), "{refused:?}");
    let (ended, events) = start(ServerConfig { allow_insecure: true, ..patient() }, &settings());
    assert!(matches!(ended, TransferError::Stopped) && events == 2, "it warns: {ended:?}");
    let keyed = Settings { key: Some(Key::new([1; 32])), ..settings() };
    let (ended, events) = start(patient(), &keyed);
    assert!(matches!(ended, TransferError::Stopped) && events == 1, "{ended:?}");
}
