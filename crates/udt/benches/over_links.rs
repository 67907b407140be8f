//! Rates over an emulated path, ours beside libudt 4.11: two of the simulator's links, driven by
//! the clock, in a relay between the peers.
//!
//!     cargo bench -p dumbbell-udt --features io --bench over_links -- \
//!         [MBITS [RTT-MS [MEGABYTES [CC,CC...]]]]
//!
//! A transfer that takes longer than two minutes is given up, and what crossed until then counts.

mod peers;

use dumbbell_net::{Limit, Link, LinkConfig, Packet};
use dumbbell_units::{Span, Time};
use peers::{Outcome, compile, peer};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LOSSES: [f64; 3] = [0.0, 1e-4, 1e-2];
const PATIENCE: Duration = Duration::from_secs(120);

struct Course {
    mbits: u64,
    rtt_ms: u64,
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "peer") {
        return peer(&words[1..]);
    }
    if words.is_empty() {
        println!("over_links takes minutes, and says what it wants as its first word: Mbit/s");
        return Ok(());
    }
    let number = |at: usize, otherwise| match words.get(at) {
        Some(word) => word.parse::<u64>(),
        None => Ok(otherwise),
    };
    let course = Course { mbits: number(0, 500)?, rtt_ms: number(1, 100)? };
    let bytes = number(2, 300)? * 1_000_000;
    let algorithms = words.get(3).map_or("udt,cubic,bbr3", String::as_str);
    let own = std::env::current_exe()?;
    println!("{} Mbit/s, {} ms, queue 1 BDP, {bytes} bytes; Mbit/s", course.mbits, course.rtt_ms);
    println!("{:<20}{:>10}{:>10}{:>10}", "loss", LOSSES[0], LOSSES[1], LOSSES[2]);
    let row = |name: &str, program: &Path, before: &[&str]| -> Outcome<()> {
        print!("{name:<20}");
        for loss in LOSSES {
            print!("{:>10.1}", transfer(program, before, bytes, &course, loss)?);
            std::io::Write::flush(&mut std::io::stdout())?;
        }
        println!();
        Ok(())
    };
    if let Some(libudt) = compile() {
        row("libudt 4.11", &libudt, &[])?;
        std::fs::remove_file(libudt)?;
    }
    for cc in algorithms.split(',') {
        row(&format!("dumbbell {cc}"), &own, &["peer", cc])?;
    }
    Ok(())
}

/// The rate at which one program's data crosses the path to another, Mbit/s.
fn transfer(
    program: &Path,
    before: &[&str],
    bytes: u64,
    course: &Course,
    loss: f64,
) -> Outcome<f64> {
    let bytes = bytes.to_string();
    let run = |words: &[&str]| {
        let output = if words[0] == "listen" { Stdio::piped() } else { Stdio::null() };
        Command::new(program).args(before).args(words).stdout(output).spawn()
    };
    let mut receiver = run(&["listen", "recv", "stream", &bytes])?;
    let mut lines = BufReader::new(receiver.stdout.take().ok_or("no output")?).lines();
    let line = lines.next().ok_or("no line")??;
    let port: u16 = line.strip_prefix("port ").ok_or("no port")?.parse()?;
    let relay = Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), course, loss)?;
    let mut sender =
        run(&["connect", "send", "stream", &bytes, &format!("127.0.0.1:{}", relay.port)])?;
    let began = Instant::now();
    let over = Arc::new(AtomicBool::new(false));
    let done = over.clone();
    let heard = thread::spawn(move || {
        let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("done ")));
        done.store(true, Ordering::Relaxed);
        line
    });
    while !over.load(Ordering::Relaxed) && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
    }
    let crossed = relay.crossed.load(Ordering::Relaxed) as f64 * 8e-6;
    let elapsed = began.elapsed().as_secs_f64();
    for child in [&mut sender, &mut receiver] {
        // One that has ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    let line = heard.join().map_err(|_| "the reader failed")?;
    let numbers = line.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    match numbers.as_deref() {
        Some([_, bytes, _, seconds, _]) => {
            Ok(bytes.parse::<f64>()? * 8e-6 / seconds.parse::<f64>()?)
        }
        _ => Ok(crossed / elapsed),
    }
}

/// Bytes on a link.
struct Bytes(Vec<u8>);

impl Packet for Bytes {
    fn size(&self) -> u32 {
        self.0.len() as u32 + 28
    }
}

/// Two links between a server and whoever talks to the relay.
struct Relay {
    port: u16,
    over: Arc<AtomicBool>,
    /// Bytes that reached the server.
    crossed: Arc<AtomicU64>,
}

impl Relay {
    fn start(server: SocketAddr, course: &Course, loss: f64) -> Outcome<Relay> {
        let bind = || -> Outcome<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket2::SockRef::from(&socket).set_recv_buffer_size(8 << 20)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let (outside, inside) = (Arc::new(bind()?), Arc::new(bind()?));
        let port = outside.local_addr()?.port();
        let (over, crossed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = Arc::new(Mutex::new(None));
        let config = |seed, loss| LinkConfig {
            rate: NonZeroU64::new(course.mbits * 1_000_000),
            delay: Span::from_micros(course.rtt_ms * 500),
            queue: Limit::Bytes(course.mbits * course.rtt_ms * 125),
            loss,
            seed,
            ..LinkConfig::default()
        };
        for inwards in [true, false] {
            let (from, to) = if inwards { (&outside, &inside) } else { (&inside, &outside) };
            let mut way = Way {
                from: from.clone(),
                to: to.clone(),
                link: Link::new(&config(7 + u64::from(inwards), if inwards { loss } else { 0.0 })),
                began: Instant::now(),
                fixed: inwards.then_some(server),
                client: client.clone(),
                crossed: crossed.clone(),
            };
            let over = over.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while !over.load(Ordering::Relaxed) {
                    way.turn(&mut buffer);
                }
            });
        }
        Ok(Relay { port, over, crossed })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// One direction.
struct Way {
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    link: Link<Bytes>,
    began: Instant,
    /// The server, on the way to it.
    fixed: Option<SocketAddr>,
    /// Who talked to the relay last.
    client: Arc<Mutex<Option<SocketAddr>>>,
    crossed: Arc<AtomicU64>,
}

impl Way {
    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn turn(&mut self, buffer: &mut [u8]) {
        let mut idle = true;
        while let Ok((length, from)) = self.from.recv_from(buffer) {
            idle = false;
            if self.fixed.is_some()
                && let Ok(mut client) = self.client.lock()
            {
                *client = Some(from);
            }
            // What is dropped is dropped.
            let _ = self.link.push(self.now(), Bytes(buffer[..length].to_vec()));
        }
        let to = self.fixed.or_else(|| self.client.lock().ok().and_then(|client| *client));
        while let (Some(to), Some(Bytes(bytes))) = (to, self.link.pop(self.now())) {
            idle = false;
            if self.to.send_to(&bytes, to).is_ok() && self.fixed.is_some() {
                self.crossed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
        }
        if idle {
            thread::sleep(Duration::from_micros(50));
        }
    }
}
