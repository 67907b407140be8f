//! Servers and folders of tests.

use dumbbell_transfer::{
    ReceiveLimits, RetryPolicy, ServerConfig, TransferError, TransferMonitor, serve,
};
use dumbbell_udt::io::{Error, Settings};
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server in a thread, stopped on drop.
pub(crate) struct Server {
    pub(crate) monitor: Arc<TransferMonitor>,
    pub(crate) address: String,
    pub(crate) thread: Option<JoinHandle<Result<(), TransferError>>>,
}

impl Server {
    pub(crate) fn start(
        root: &Path,
        address: &str,
        settings: &Settings,
        config: ServerConfig,
    ) -> Server {
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
            let Err(TransferError::At { error: Error::Io(_), .. }) = ended else {
                panic!("{ended:?}")
            };
        }
    }

    pub(crate) fn of(root: &Path, settings: &Settings) -> Server {
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
pub(crate) fn free_address() -> String {
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
pub(crate) const UNLIMITED: Duration = Duration::from_secs(100_000);

pub(crate) fn quick() -> RetryPolicy {
    RetryPolicy {
        max_retries: 1000,
        delay: Duration::from_millis(200),
        response_timeout: UNLIMITED,
        ..RetryPolicy::default()
    }
}

/// Settings whose timeouts no loaded machine exceeds.
pub(crate) fn settings() -> Settings {
    Settings { connect_timeout: UNLIMITED, idle_timeout: UNLIMITED, ..Settings::default() }
}

pub(crate) fn patient() -> ServerConfig {
    ServerConfig { request_timeout: UNLIMITED, ..ServerConfig::default() }
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room")
}

pub(crate) fn data(length: usize, salt: u32) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(salt) >> 13) as u8)
        .collect()
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    fs::write(path, bytes).expect("it can be written");
    path.to_owned()
}

/// Names in a folder, hidden ones included.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("it is there").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// No limits of what is received.
pub(crate) const ANY: ReceiveLimits =
    ReceiveLimits { max_bytes: u64::MAX, keep_free: 0, overwrite: true };
