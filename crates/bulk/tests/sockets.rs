//! Transfers over the sockets of this machine.

use dumbbell_bulk::io::Transfer;
use dumbbell_bulk::{
    Engine, Load, RbudpOptions, SabulOptions, TsunamiOptions, rbudp, sabul, tsunami,
};
use rustix::net::sockopt::set_socket_linger;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Transfers over loopback until the sender has completed: both ends. As in the testbed, a socket that is
/// closed resets its connection.
fn transfer(sender: impl Engine + 'static, receiver: impl Engine + 'static) -> [Transfer; 2] {
    let sockets = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let [one, other] = sockets.each_ref().map(|socket| socket.local_addr().expect("an address"));
    let [data, arriving] = sockets;
    data.connect(other).expect("a connected socket");
    arriving.connect(one).expect("a connected socket");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    set_socket_linger(&listener, Some(Duration::ZERO)).expect("an option of sockets");
    let at = listener.local_addr().expect("an address");
    let sender =
        Transfer::start(sender, data, move |_| listener.accept().map(|(control, _)| control));
    let receiver = Transfer::start(receiver, arriving, move |_| {
        let control = TcpStream::connect(at)?;
        set_socket_linger(&control, Some(Duration::ZERO))?;
        Ok(control)
    });
    let (sender, receiver) = (sender.expect("a thread"), receiver.expect("a thread"));
    let begin = Instant::now();
    while sender.stats().completed.is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", sender.stats());
        assert_eq!((sender.failure(), receiver.failure()), (None, None));
        std::thread::sleep(Duration::from_millis(2));
    }
    [sender, receiver]
}

#[test]
fn every_protocol_transfers_over_sockets() {
    const BYTES: u64 = 3_000_123;
    let load = Load { bytes: Some(BYTES), stop: None };
    let options = SabulOptions { initial_rate_bps: 100_000_000, ..SabulOptions::default() };
    let sender = sabul::Sender::new(options.clone(), load);
    let [_, receiver] = transfer(sender, sabul::Receiver::new(options));
    let received = receiver.stats();
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));

    let options = RbudpOptions { rate_bps: 100_000_000, ..RbudpOptions::default() };
    let sender = rbudp::Sender::new(options.clone(), load);
    let [_, receiver] = transfer(sender, rbudp::Receiver::new(options));
    let received = receiver.stats();
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));

    let options = TsunamiOptions { target_rate_bps: 100_000_000, ..TsunamiOptions::default() };
    let sender = tsunami::Server::new(options.clone(), load);
    let [_, receiver] = transfer(sender, tsunami::Client::new(options));
    let received = receiver.stats();
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));
}

#[test]
fn the_end_of_a_transfer_is_no_failure_of_either_end() {
    let load = Load { bytes: Some(100_000), stop: None };
    let options = SabulOptions { initial_rate_bps: 100_000_000, ..SabulOptions::default() };
    let sender = sabul::Sender::new(options.clone(), load);
    let ends = transfer(sender, sabul::Receiver::new(options));
    // Until both threads have ended.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(ends.each_ref().map(Transfer::failure), [None, None]);
}
