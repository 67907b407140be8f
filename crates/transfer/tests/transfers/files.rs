//! Transfers between a server and its clients.

use crate::harness::*;
use dumbbell_transfer::{
    BenchLimit, ReceiveLimits, RetryPolicy, ServerConfig, TransferError, TransferMonitor, bench,
    list, pull, push,
};
use dumbbell_udt::io::{Error, Key, Settings, Socket};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

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
        push(&server.address, std::slice::from_ref(&root), None, &settings, quick(), &monitor)
            .expect("it arrives");
        assert_eq!(monitor.progress().files, (152, 152));
        let paths = ["photos".to_owned()];
        pull(&server.address, &paths, back.path(), ANY, &settings, quick(), &Arc::default())
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
fn links_and_partial_files_in_a_folder_are_skipped_and_logged() {
    let (here, there) = (folder(), folder());
    let root = here.path().join("photos");
    write(&root.join("one"), b"1");
    write(&root.join("x.dumbbell-part"), b"2");
    for name in ["to-one", "to-nowhere"] {
        symlink(name.trim_start_matches("to-"), root.join(name)).expect("it can be made");
    }
    let server = Server::of(there.path(), &settings());
    let monitor = Arc::new(TransferMonitor::new());
    push(&server.address, std::slice::from_ref(&root), None, &settings(), quick(), &monitor)
        .expect("it arrives");
    let logged = format!("skipped links, special and partial files: {}", root.display());
    assert_eq!(monitor.take_events(), [format!("{logged}/to-nowhere and 2 more")]);
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
        let sending = scope
            .spawn(|| push(&address, std::slice::from_ref(&file), None, &slow, quick(), &monitor));
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
        let sending = scope
            .spawn(|| push(&address, std::slice::from_ref(&file), None, &slow, quick(), &monitor));
        // Bytes are counted when they are queued; the part exists once some have arrived.
        while !part(there.path()) {
            thread::yield_now();
        }
        assert!(!there.path().join("file").exists());
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
        push(&server.address, std::slice::from_ref(&file), None, &settings(), quick(), monitor)
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
            pull(&server.address, &paths, here.path(), ANY, &settings, quick(), &Arc::default());
        assert!(matches!(refused, Err(TransferError::Refused(_))), "{path}: {refused:?}");
    }
    let closed = ServerConfig { allow_push: false, allow_pull: false, ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings, closed);
    let refused = push(&server.address, &[file], None, &settings, quick(), &Arc::default());
    assert!(matches!(refused, Err(TransferError::Refused(_))), "{refused:?}");
    let refused = pull(
        &server.address,
        &["own".to_owned()],
        here.path(),
        ANY,
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
        let done = pull(&server.address, &paths, here.path(), ANY, &settings(), quick(), &monitor);
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
    let refused = push(&server.address, &[root], None, &settings(), quick(), &monitor);
    let Err(TransferError::Refused(why)) = &refused else { panic!("{refused:?}") };
    assert!(why.ends_with("root/b: Is a directory (os error 21)"), "{why}");
    assert!(monitor.take_events().is_empty());
}

#[test]
fn a_server_logs_its_own_refusal_as_its_own() {
    let (here, there) = (folder(), folder());
    let server = Server::of(there.path(), &settings());
    let refused = get(&server, &["absent"], here.path());
    assert!(matches!(refused, Err(TransferError::Refused(_))), "{refused:?}");
    let event = loop {
        match server.monitor.take_events().into_iter().find(|event| event.contains("no such")) {
            Some(event) => break event,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(event.ends_with(": refused: there is no such file"), "{event}");
}

#[test]
fn a_server_logs_why_a_client_stopped_receiving() {
    let (here, there) = (folder(), folder());
    write(&there.path().join("root/b"), &data(3_000_000, 1));
    write(&here.path().join("root/b/not-empty"), b"x");
    let server = Server::of(there.path(), &settings());
    let paths = ["root".to_owned()];
    let failed =
        pull(&server.address, &paths, here.path(), ANY, &settings(), quick(), &Arc::default());
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
fn names_that_no_receiver_accepts_are_rejected_before_connecting() {
    let here = folder();
    for name in ["a\\b", "a.dumbbell-part"] {
        let file = write(&here.path().join(name), b"x");
        let refused = push("127.0.0.1:1", &[file], None, &settings(), quick(), &Arc::default());
        assert!(matches!(refused, Err(TransferError::Path { .. })), "{refused:?}");
    }
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
    push(&server.address, &[file], None, &settings(), quick(), &Arc::default())
        .expect("it arrives");
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
    let give = |policy| push(&server.address, &file, None, &settings(), policy, &Arc::default());
    let response_timeout = Duration::from_millis(500);
    let failed = give(RetryPolicy { max_retries: 0, response_timeout, ..quick() });
    assert!(matches!(failed, Err(TransferError::At { error: Error::TimedOut, .. })), "{failed:?}");
    drop(silent);
    give(quick()).expect("the silent clients have ended");
}

#[test]
fn a_server_for_one_client_ends_after_it() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(10_000, 9));
    let once = ServerConfig { once: true, ..patient() };
    let mut server = Server::start(there.path(), &free_address(), &settings(), once);
    push(&server.address, &[file], None, &settings(), quick(), &Arc::default())
        .expect("it arrives");
    let ended = server.thread.take().expect("it runs").join().expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    assert!(fs::read(there.path().join("file")).ok() == Some(data(10_000, 9)));
}

/// Pulls `paths` of a server into a folder.
fn get(server: &Server, paths: &[&str], into: &Path) -> Result<(), TransferError> {
    let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
    pull(&server.address, &paths, into, ANY, &settings(), quick(), &Arc::default())
}

#[test]
fn a_server_lists_its_folder_and_sends_all_of_it() {
    let (there, back) = (folder(), folder());
    write(&there.path().join("a/b"), b"12");
    write(&there.path().join("c"), b"123");
    symlink("/etc/passwd", there.path().join("out")).expect("it can be made");
    let server = Server::of(there.path(), &settings());
    for whole in [".", "", "/"] {
        let found = list(&server.address, whole, &settings(), &Arc::default()).expect("it answers");
        let found: Vec<_> = found.into_iter().map(|file| (file.name, file.size)).collect();
        assert_eq!(found, [("a".to_owned(), None), ("c".to_owned(), Some(3))]);
        get(&server, &[whole], back.path()).expect("it comes");
        assert_eq!(names(back.path()), ["a", "c"]);
        let skipped = format!("partial files: {}/out", there.path().display());
        while !server.monitor.take_events().iter().any(|event| event.ends_with(&skipped)) {
            thread::yield_now();
        }
    }
    let refused = list(&server.address, "..", &settings(), &Arc::default());
    assert!(matches!(refused, Err(TransferError::Refused(_))), "{refused:?}");
}

#[test]
fn two_paths_with_the_same_last_name_are_rejected() {
    let (here, there) = (folder(), folder());
    let files = [write(&here.path().join("a/x"), b"1"), write(&here.path().join("b/x"), b"2")];
    let server = Server::of(there.path(), &settings());
    let refused = push(&server.address, &files, None, &settings(), quick(), &Arc::default());
    assert!(matches!(refused, Err(TransferError::Path { .. })), "{refused:?}");
    let refused = get(&server, &["a/x", "b/x"], here.path());
    assert!(matches!(refused, Err(TransferError::Path { .. })), "{refused:?}");
}

#[test]
fn files_are_pushed_into_a_folder_of_the_server() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), b"x")];
    let server = Server::of(there.path(), &settings());
    let give =
        |into| push(&server.address, &file, Some(into), &settings(), quick(), &Arc::default());
    give("photos/2026/").expect("it arrives");
    assert_eq!(names(&there.path().join("photos/2026")), ["file"]);
    for bad in ["..", "../x", "", "/", "a//b"] {
        let refused = give(bad);
        assert!(matches!(refused, Err(TransferError::Into(_))), "{bad}: {refused:?}");
    }
}

#[test]
fn folders_keep_their_modes_and_their_owner_may_write() {
    let (here, there) = (folder(), folder());
    let root = here.path().join("root");
    for (name, mode) in [("private", 0o700), ("private/inside", 0o500), ("group", 0o750)] {
        write(&root.join(name).join("file"), b"x");
        let path = root.join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    let server = Server::of(there.path(), &settings());
    let into = Some("a/b");
    push(&server.address, &[root], into, &settings(), quick(), &Arc::default())
        .expect("it arrives");
    let mode = |name: &str| {
        let path = there.path().join("a/b/root").join(name);
        fs::metadata(path).expect("it is there").mode() & 0o777
    };
    assert_eq!([mode("private"), mode("private/inside"), mode("group")], [0o700, 0o700, 0o750]);
    assert_eq!(fs::read(there.path().join("a/b/root/private/inside/file")).ok(), Some(b"x".into()));
}

#[test]
fn modes_obey_the_umask_and_parts_are_private() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(3_000_000, 1));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::process::umask(mask);
    let server = Server::of(there.path(), &settings());
    push(&server.address, &[file], None, &settings(), quick(), &Arc::default())
        .expect("it arrives");
    let mode = fs::metadata(there.path().join("file")).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o777 & !mask.bits());
    assert_ne!(mask.bits(), 0, "the test needs a umask");
}

#[test]
fn an_unchanged_file_is_neither_read_nor_copied() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), &data(100_000, 1))];
    let server = Server::of(there.path(), &settings());
    let send = |monitor: &Arc<TransferMonitor>| {
        push(&server.address, &file, None, &settings(), quick(), monitor).expect("it arrives");
        (monitor.progress().resumed, monitor.progress().names)
    };
    assert_eq!(send(&Arc::default()), (0, vec![("file".to_owned(), 1)]));
    let copy = there.path().join("file");
    let before = fs::metadata(&copy).expect("it is there");
    // Other content of that size and time stays, so it was not read.
    let modified = before.modified().expect("it has one");
    write(&copy, &data(100_000, 2));
    fs::File::options()
        .write(true)
        .open(&copy)
        .and_then(|file| file.set_modified(modified))
        .expect("it is ours");
    assert_eq!(send(&Arc::default()), (100_000, vec![("file".to_owned(), 0)]));
    let after = fs::metadata(&copy).expect("it is there");
    assert_eq!((before.ino(), Some(modified)), (after.ino(), after.modified().ok()));
    assert!(fs::read(&copy).ok() == Some(data(100_000, 2)));
}

#[test]
fn a_file_with_another_time_only_gets_the_time() {
    let (here, there) = (folder(), folder());
    let file = write(&here.path().join("file"), &data(100_000, 1));
    let server = Server::of(there.path(), &settings());
    let files = [file.clone()];
    let send = |monitor: &Arc<TransferMonitor>| {
        push(&server.address, &files, None, &settings(), quick(), monitor).expect("it arrives");
    };
    send(&Arc::default());
    let inode = || fs::metadata(there.path().join("file")).expect("it is there").ino();
    let before = inode();
    fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)))
        .expect("it is ours");
    let monitor = Arc::default();
    send(&monitor);
    assert_eq!((monitor.progress().resumed, inode()), (100_000, before));
    let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    assert_eq!(modified(&there.path().join("file")), modified(&file));
}

#[test]
fn other_parts_of_a_complete_file_are_removed() {
    let (here, there) = (folder(), folder());
    let file = [write(&here.path().join("file"), &data(1000, 1))];
    let part = |name: &str| write(&there.path().join(name), b"x");
    part(".file.0123456789abcdef.dumbbell-part");
    part(".other.0123456789abcdef.dumbbell-part");
    let old = part(".old.0123456789abcdef.dumbbell-part");
    fs::File::options()
        .write(true)
        .open(&old)
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("it is ours");
    let server = Server::of(there.path(), &settings());
    push(&server.address, &file, None, &settings(), quick(), &Arc::default()).expect("it arrives");
    assert_eq!(names(there.path()), [".other.0123456789abcdef.dumbbell-part", "file"]);
}

/// Pushes a file of 1000 bytes to a server with these limits, on which `name` exists.
fn push_limited(limits: ReceiveLimits, name: &str) -> (Result<(), TransferError>, Vec<String>) {
    let (here, there) = (folder(), folder());
    write(&there.path().join(name), b"own");
    let files = [write(&here.path().join("a"), &data(500, 1)), write(&here.path().join("b"), b"b")];
    let config = ServerConfig { limits, ..patient() };
    let server = Server::start(there.path(), &free_address(), &settings(), config);
    let done = push(&server.address, &files, None, &settings(), quick(), &Arc::default());
    if name == "a" && !limits.overwrite {
        assert_eq!(fs::read(there.path().join("a")).ok(), Some(b"own".to_vec()));
    }
    (done, names(there.path()))
}

#[test]
fn a_server_keeps_to_its_limits() {
    let (done, found) = push_limited(ReceiveLimits { max_bytes: 8192, ..ANY }, "c");
    assert!(done.is_ok() && found == ["a", "b", "c"], "{done:?} {found:?}");
    for limits in
        [ReceiveLimits { max_bytes: 499, ..ANY }, ReceiveLimits { keep_free: u64::MAX / 2, ..ANY }]
    {
        let (done, found) = push_limited(limits, "c");
        assert!(matches!(done, Err(TransferError::Refused(_))), "{done:?}");
        assert_eq!(found, ["c"]);
    }
    let (done, found) = push_limited(ReceiveLimits { overwrite: false, ..ANY }, "a");
    let Err(TransferError::Exists(kept)) = &done else { panic!("{done:?}") };
    let said = done.as_ref().expect_err("as above").to_string();
    assert_eq!(said, "not replaced, though size or time differ: a");
    assert_eq!(
        (&kept.first[..], &found[..]),
        (&["a".to_owned()][..], &["a".to_owned(), "b".into()][..])
    );
}
