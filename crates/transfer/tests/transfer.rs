//! Transfers between a server and its clients over loopback.

use dumbbell_transfer::{
    BenchLimit, RetryPolicy, ServerConfig, TransferError, TransferMonitor, bench, pull, push, serve,
};
use dumbbell_udt::io::{Error, Key, Settings, Socket};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server in a thread, stopped on drop.
struct Server {
    monitor: Arc<TransferMonitor>,
    address: String,
    thread: Option<JoinHandle<Result<(), TransferError>>>,
}

impl Server {
    fn start(root: &Path, address: &str, settings: &Settings, config: ServerConfig) -> Server {
        loop {
            let monitor = Arc::new(TransferMonitor::new());
            let (root, local) = (root.to_owned(), address.to_owned());
            let (settings, own) = (settings.clone(), monitor.clone());
            let thread = thread::spawn(move || serve(&root, &local, &settings, config, &own));
            while !thread.is_finished() {
                if !monitor.take_events().is_empty() {
                    return Server { monitor, address: address.to_owned(), thread: Some(thread) };
                }
                thread::sleep(Duration::from_millis(5));
            }
            // A previous server has not released the port yet.
            let ended = thread.join().expect("no panic");
            let Err(TransferError::Connection(Error::Io(_))) = ended else { panic!("{ended:?}") };
        }
    }

    fn of(root: &Path, settings: &Settings) -> Server {
        Server::start(root, &free_address(), settings, patient())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.monitor.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// An address with a free port below Linux's range of ephemeral ports, so that no other socket gets it.
fn free_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = 10_000 + std::process::id() % 1_000 * 20;
    loop {
        let port = base + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{port}");
        if UdpSocket::bind(&address).is_ok() {
            return address;
        }
    }
}

/// Beyond any test's duration: the test runner ends tests that hang.
const UNLIMITED: Duration = Duration::from_secs(100_000);

fn quick() -> RetryPolicy {
    RetryPolicy {
        max_retries: 1000,
        delay: Duration::from_millis(200),
        response_timeout: UNLIMITED,
        ..RetryPolicy::default()
    }
}

/// Settings whose timeouts no loaded machine exceeds.
fn settings() -> Settings {
    Settings { connect_timeout: UNLIMITED, idle_timeout: UNLIMITED, ..Settings::default() }
}

fn patient() -> ServerConfig {
    ServerConfig { request_timeout: UNLIMITED, ..ServerConfig::default() }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room")
}

fn data(length: usize, salt: u32) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(salt) >> 13) as u8)
        .collect()
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    fs::write(path, bytes).expect("it can be written");
    path.to_owned()
}

/// Names in a folder, hidden ones included.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("it is there").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn pushed_and_pulled_folders_are_identical() {
    for key in [None, Some(Key::new([3; 32]))] {
        let (here, there, back) = (folder(), folder(), folder());
        let settings = Settings { key, ..settings() };
        let root = here.path().join("photos");
        for number in 0..150 {
            write(&root.join(format!("many/{number}")), &data(number * 7, number as u32));
        }
        write(&root.join("empty"), b"");
        write(&root.join("deep/er/big"), &data(3_000_000, 1));
        fs::create_dir(root.join("nothing")).expect("it can be made");
        let server = Server::of(there.path(), &settings);
        let monitor = Arc::new(TransferMonitor::new());
        push(&server.address, std::slice::from_ref(&root), &settings, quick(), &monitor)
            .expect("it arrives");
        assert_eq!(monitor.progress().files, (152, 152));
        let paths = ["photos".to_owned()];
        pull(&server.address, &paths, back.path(), &settings, quick(), &Arc::default())
            .expect("it comes back");
        for at in [there.path(), back.path()] {
            let copy = at.join("photos");
            assert_eq!(names(&copy), ["deep", "empty", "many", "nothing"]);
            assert_eq!(fs::read(copy.join("deep/er/big")).ok(), Some(data(3_000_000, 1)));
            assert_eq!(fs::read(copy.join("many/149")).ok(), Some(data(149 * 7, 149)));
            let changed =
                |at: &Path| fs::metadata(at.join("empty")).and_then(|m| m.modified()).ok();
            assert_eq!(changed(&copy), changed(&root));
        }
    }
}

#[test]
fn links_in_a_folder_are_skipped_and_logged() {
    let (here, there) = (folder(), folder());
    let root = here.path().join("photos");
    write(&root.join("one"), b"1");
    for name in ["to-one", "to-nowhere"] {
        symlink(name.trim_start_matches("to-"), root.join(name)).expect("it can be made");
    }
    let server = Server::of(there.path(), &settings());
    let monitor = Arc::new(TransferMonitor::new());
    push(&server.address, std::slice::from_ref(&root), &settings(), quick(), &monitor)
        .expect("it arrives");
    let logged = format!("skipped links and special files: {}", root.display());
    assert_eq!(monitor.take_events(), [format!("{logged}/to-nowhere and 1 more")]);
    assert_eq!(names(&there.path().join("photos")), ["one"]);
}

#[test]
fn a_transfer_resumes_after_client_or_server_died() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(40_000_000, 5));
    let address = free_address();
    // A small buffer makes the transfer slow enough to be interrupted.
    let mut slow = settings();
    slow.options.receive_buffer = 32;
    let part = |at: &Path| names(at).iter().any(|name| name.ends_with("dumbbell-part"));

    // The client is stopped.
    let server = Server::start(there.path(), &address, &slow, patient());
    let monitor = Arc::new(TransferMonitor::new());
    thread::scope(|scope| {
        let sending =
            scope.spawn(|| push(&address, std::slice::from_ref(&file), &slow, quick(), &monitor));
        while monitor.progress().bytes < 1_000_000 {
            thread::yield_now();
        }
        monitor.stop();
        let ended = sending.join().expect("no panic");
        assert!(matches!(ended, Err(TransferError::Stopped)), "{ended:?}");
    });

    // The server is stopped and restarted.
    let monitor = Arc::new(TransferMonitor::new());
    thread::scope(|scope| {
        let sending =
            scope.spawn(|| push(&address, std::slice::from_ref(&file), &slow, quick(), &monitor));
        while monitor.progress().bytes < 3_000_000 {
            thread::yield_now();
        }
        assert!(part(there.path()) && !there.path().join("file").exists());
        drop(server);
        let again = Server::start(there.path(), &address, &settings(), patient());
        sending.join().expect("no panic").expect("it arrives after all");
        drop(again);
    });
    let progress = monitor.progress();
    assert!(progress.resumed > 0 && progress.bytes == 40_000_000, "{progress:?}");
    assert_eq!(names(there.path()), ["file"]);
    assert!(fs::read(there.path().join("file")).ok() == Some(data(40_000_000, 5)));
}

#[test]
fn a_part_of_another_version_of_the_file_is_not_resumed() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(100_000, 1));
    let server = Server::of(there.path(), &settings());
    let send = |monitor: &Arc<TransferMonitor>| {
        push(&server.address, std::slice::from_ref(&file), &settings(), quick(), monitor)
            .expect("it arrives");
    };
    send(&Arc::default());
    // Different content of the same length.
    write(&file, &data(100_000, 2));
    send(&Arc::default());
    assert!(fs::read(there.path().join("file")).ok() == Some(data(100_000, 2)));
    // An unchanged file is not transferred again.
    let monitor = Arc::default();
    send(&monitor);
    assert_eq!(monitor.progress().resumed, 100_000);
    assert_eq!(names(there.path()), ["file"]);
}

#[test]
fn a_server_enforces_its_folder_and_its_permissions() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), b"x");
    write(&there.path().join("own"), b"y");
    let outside = write(&here.path().join("secret"), b"z");
    std::os::unix::fs::symlink(&outside, there.path().join("link")).expect("it can be made");
    let settings = settings();
    let server = Server::of(there.path(), &settings);
    for path in ["../secret", "/etc/passwd", "link", "absent"] {
        let paths = [path.to_owned()];
        let refused =
            pull(&server.address, &paths, here.path(), &settings, quick(), &Arc::default());
        assert!(matches!(refused, Err(TransferError::Refused(_))), "{path}: {refused:?}");
    }
    let closed = ServerConfig { allow_push: false, allow_pull: false, ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings, closed);
    let refused = push(&server.address, &[file], &settings, quick(), &Arc::default());
    assert!(matches!(refused, Err(TransferError::Refused(_))), "{refused:?}");
    let refused = pull(
        &server.address,
        &["own".to_owned()],
        here.path(),
        &settings,
        quick(),
        &Arc::default(),
    );
    assert!(matches!(refused, Err(TransferError::Refused(_))), "{refused:?}");
}

#[test]
fn paths_that_are_requested_repeatedly_are_sent_once() {
    let (here, there) = (folder(), folder());
    write(&there.path().join("root/in/file"), &data(1000, 1));
    write(&there.path().join("root.txt"), &data(1000, 2));
    let server = Server::of(there.path(), &settings());
    let ask = |paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        let monitor = Arc::new(TransferMonitor::new());
        let done = pull(&server.address, &paths, here.path(), &settings(), quick(), &monitor);
        (done, monitor.progress().files)
    };
    let (done, files) = ask(&[&["root", "root/", "root.txt"][..]; 1000].concat());
    assert!(done.is_ok() && files == (2, 2), "{done:?}, {files:?}");
    let (refused, _) = ask(&["root.txt", "root/in/file", "root"]);
    let Err(TransferError::Refused(why)) = &refused else { panic!("{refused:?}") };
    assert_eq!(why, "root/in/file is part of root");
}

#[test]
fn a_sender_gets_the_receivers_reason_and_does_not_retry() {
    let (here, there) = (folder(), folder());
    let root = here.path().join("root");
    write(&root.join("a"), &data(20_000_000, 1));
    write(&root.join("b"), b"b");
    write(&there.path().join("root/b/not-empty"), b"x");
    let server = Server::of(there.path(), &settings());
    let monitor = Arc::new(TransferMonitor::new());
    let refused = push(&server.address, &[root], &settings(), quick(), &monitor);
    let Err(TransferError::Refused(why)) = &refused else { panic!("{refused:?}") };
    assert!(why.ends_with("root/b: Is a directory (os error 21)"), "{why}");
    assert!(monitor.take_events().is_empty());
}

#[test]
fn a_server_logs_why_a_client_stopped_receiving() {
    let (here, there) = (folder(), folder());
    write(&there.path().join("root/b"), &data(3_000_000, 1));
    write(&here.path().join("root/b/not-empty"), b"x");
    let server = Server::of(there.path(), &settings());
    let paths = ["root".to_owned()];
    let failed = pull(&server.address, &paths, here.path(), &settings(), quick(), &Arc::default());
    assert!(matches!(failed, Err(TransferError::File { .. })), "{failed:?}");
    let event = loop {
        let events = server.monitor.take_events();
        match events.into_iter().find(|event| event.contains("refuses")) {
            Some(event) => break event,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(event.contains("Is a directory"), "{event}");
}

#[test]
fn a_name_with_a_backslash_is_rejected_before_connecting() {
    let here = folder();
    let file = write(&here.path().join("a\\b"), b"x");
    let refused = push("127.0.0.1:1", &[file], &settings(), quick(), &Arc::default());
    assert!(matches!(refused, Err(TransferError::Path { .. })), "{refused:?}");
}

#[test]
fn a_bench_reports_the_received_bytes() {
    let there = folder();
    let server = Server::of(there.path(), &settings());
    for cc in ["udt", "cubic"] {
        let Settings { options, algorithm, .. } = Settings::for_algorithm(cc);
        let settings = Settings { options, algorithm, ..settings() };
        let monitor = Arc::new(TransferMonitor::new());
        let load = BenchLimit::Bytes(2_000_000);
        let interval = Duration::from_millis(5);
        let (bytes, _) =
            bench(&server.address, load, &settings, interval, &monitor).expect("it is measured");
        assert_eq!(bytes, 2_000_000);
        assert!(monitor.samples().last().is_some_and(|last| last.statistics.sender.delivered > 0));
    }
}

/// A connection whose client sends no request, while its engine sends keep-alives.
fn silent(server: &Server) -> Socket {
    Socket::connect(&server.address[..], &settings()).expect("it listens")
}

#[test]
fn a_silent_client_does_not_block_a_server_for_one_client() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(10_000, 9));
    let timeout = Duration::from_millis(500);
    let once = ServerConfig { once: true, request_timeout: timeout, ..ServerConfig::default() };
    let mut server = Server::start(there.path(), &free_address(), &settings(), once);
    let _silent = silent(&server);
    push(&server.address, &[file], &settings(), quick(), &Arc::default()).expect("it arrives");
    let ended = server.thread.take().expect("it runs").join().expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn clients_beyond_the_maximum_wait_until_another_one_ends() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), &data(10_000, 9))];
    let two = ServerConfig { max_clients: 2, ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings(), two);
    let silent = [silent(&server), silent(&server)];
    let give = |policy| push(&server.address, &file, &settings(), policy, &Arc::default());
    let response_timeout = Duration::from_millis(500);
    let failed = give(RetryPolicy { max_retries: 0, response_timeout, ..quick() });
    assert!(matches!(failed, Err(TransferError::Connection(Error::TimedOut))), "{failed:?}");
    drop(silent);
    give(quick()).expect("the silent clients have ended");
}

#[test]
fn a_server_for_one_client_ends_after_it() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(10_000, 9));
    let once = ServerConfig { once: true, ..patient() };
    let mut server = Server::start(there.path(), &free_address(), &settings(), once);
    push(&server.address, &[file], &settings(), quick(), &Arc::default()).expect("it arrives");
    let ended = server.thread.take().expect("it runs").join().expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    assert!(fs::read(there.path().join("file")).ok() == Some(data(10_000, 9)));
}
