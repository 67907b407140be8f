//! Transfers over the sockets of this machine.

use dumbbell_bulk::io::Transfer;
use dumbbell_bulk::{
    Engine, Load, RbudpOptions, SabulOptions, Stats, TsunamiOptions, rbudp, sabul, tsunami,
};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Transfers over loopback until the sender has completed: the statistics of both ends.
fn transfer(sender: impl Engine + 'static, receiver: impl Engine + 'static) -> [Stats; 2] {
    let sockets = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let [one, other] = sockets.each_ref().map(|socket| socket.local_addr().expect("an address"));
    let [data, arriving] = sockets;
    data.connect(other).expect("a connected socket");
    arriving.connect(one).expect("a connected socket");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let at = listener.local_addr().expect("an address");
    let sender =
        Transfer::start(sender, data, move |_| listener.accept().map(|(control, _)| control));
    let receiver = Transfer::start(receiver, arriving, move |_| TcpStream::connect(at));
    let (sender, receiver) = (sender.expect("a thread"), receiver.expect("a thread"));
    let begin = Instant::now();
    while sender.stats().completed.is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", sender.stats());
        assert_eq!((sender.failure(), receiver.failure()), (None, None));
        std::thread::sleep(Duration::from_millis(2));
    }
    [sender.stats(), receiver.stats()]
}

#[test]
fn every_protocol_transfers_over_sockets() {
    const BYTES: u64 = 3_000_123;
    let load = Load { bytes: Some(BYTES), stop: None };
    let options = SabulOptions { initial_rate_bps: 100_000_000, ..SabulOptions::default() };
    let sender = sabul::Sender::new(options.clone(), load);
    let [_, received] = transfer(sender, sabul::Receiver::new(options));
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));

    let options = RbudpOptions { rate_bps: 100_000_000, ..RbudpOptions::default() };
    let sender = rbudp::Sender::new(options.clone(), load);
    let [_, received] = transfer(sender, rbudp::Receiver::new(options));
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));

    let options = TsunamiOptions { target_rate_bps: 100_000_000, ..TsunamiOptions::default() };
    let sender = tsunami::Server::new(options.clone(), load);
    let [_, received] = transfer(sender, tsunami::Client::new(options));
    assert_eq!((received.received, received.delivered), (BYTES, BYTES));
}
