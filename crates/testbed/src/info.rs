//! What sockets of the kernel tell of themselves (include/uapi/linux/tcp.h and mptcp.h).
//!
//! The structures grow with every kernel; what an older one does not tell is 0.

use crate::sys::socket_option;
use dumbbell_sim::{FlowRow, SeriesRow};
use std::io;
use std::os::fd::AsFd;

const TCP_INFO: i32 = 11;
const MPTCP_INFO: i32 = 1;
const MPTCP_TCPINFO: i32 = 2;
const MPTCP_SUBFLOW_ADDRS: i32 = 3;
const SOL_MPTCP: i32 = 284;
/// Room for a tcp_info of kernels to come.
const ROOM: usize = 512;
/// Subflows that a connection of Linux may have.
const SUBFLOWS: usize = 9;
/// A ssthresh that has not been set (TCP_INFINITE_SSTHRESH).
const INFINITE: u32 = 0x7fff_ffff;

/// A tcp_info.
#[derive(Clone, Copy)]
pub(crate) struct TcpInfo([u8; ROOM]);

impl TcpInfo {
    /// What a socket of plain TCP tells.
    pub(crate) fn of(socket: impl AsFd) -> io::Result<TcpInfo> {
        let mut info = TcpInfo([0; ROOM]);
        socket_option(socket, libc::IPPROTO_TCP, TCP_INFO, &mut info.0)?;
        Ok(info)
    }

    /// What a kernel wrote down of a socket.
    pub(crate) fn from_bytes(bytes: &[u8]) -> TcpInfo {
        let mut info = TcpInfo([0; ROOM]);
        let len = bytes.len().min(ROOM);
        info.0[..len].copy_from_slice(&bytes[..len]);
        info
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16_ordered(at, 0)) | u32::from(self.u16_ordered(at, 1)) << 16
    }

    /// The low or the high half of a number of 32 bits.
    fn u16_ordered(&self, at: usize, half: usize) -> u16 {
        let half = if cfg!(target_endian = "big") { 1 - half } else { half };
        self.u16(at + 2 * half)
    }

    fn u64(&self, at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(at)), u64::from(self.u32(at + 4)));
        if cfg!(target_endian = "big") { first << 32 | second } else { second << 32 | first }
    }

    fn srtt(&self) -> f32 {
        seconds(self.u32(68))
    }

    /// Payload acknowledged, in any order; the SYN counts as a byte of it.
    fn delivered(&self) -> u64 {
        let (sacked, mss) = (u64::from(self.u32(28)), u64::from(self.u32(16)));
        self.u64(120).saturating_sub(1) + sacked * mss
    }

    /// Fills in what a sender knows; the pacing rate only if it is `paced` at all. What the kernel
    /// does not tell stays unknown: the latest round-trip time, and how many packets were ever
    /// marked lost, for which the retransmissions stand.
    pub(crate) fn observe(&self, paced: bool, row: &mut SeriesRow) {
        let ssthresh = self.u32(76);
        let pacing = self.u64(104);
        let is_paced = paced && pacing != u64::MAX;
        let min_rtt = self.u32(148);
        let out = self.u32(24) + self.u32(36);
        *row = SeriesRow {
            cwnd: self.u32(80) as f32,
            ssthresh: if ssthresh >= INFINITE { f32::INFINITY } else { ssthresh as f32 },
            srtt: self.srtt(),
            rtt: f32::NAN,
            min_rtt: if min_rtt == u32::MAX { f32::NAN } else { seconds(min_rtt) },
            pacing_rate: if is_paced { pacing as f32 * 8.0 } else { f32::NAN },
            delivery_rate: self.u64(160) as f32 * 8.0,
            in_flight: out.saturating_sub(self.u32(28) + self.u32(32)),
            sent: u64::from(self.u32(156)),
            retransmitted: u64::from(self.u32(100)),
            lost: u64::from(self.u32(100)),
            delivered: self.delivered(),
            ca_state: self.0[1],
            ..*row
        };
    }

    /// Fills in what a sender knows at the end.
    pub(crate) fn conclude(&self, row: &mut FlowRow) {
        let retransmitted = u64::from(self.u32(100));
        *row = FlowRow {
            sent: u64::from(self.u32(156)),
            retransmitted,
            lost: retransmitted,
            delivered: self.delivered(),
            timeouts: u32::from(self.u16(240)),
            ..*row
        };
    }
}

/// Seconds from microseconds; 0 is "not known yet".
fn seconds(us: u32) -> f32 {
    if us == 0 { f32::NAN } else { us as f32 / 1e6 }
}

/// What each subflow of a connection of Multipath TCP tells, with the address of its own end.
pub(crate) fn subflows(socket: impl AsFd) -> io::Result<Vec<([u8; 4], TcpInfo)>> {
    let infos = array::<ROOM>(&socket, MPTCP_TCPINFO)?;
    let addresses = array::<256>(&socket, MPTCP_SUBFLOW_ADDRS)?;
    // A struct sockaddr_in: family, port, address.
    let address = |pair: &[u8; 256]| [pair[4], pair[5], pair[6], pair[7]];
    Ok(addresses.iter().map(address).zip(infos.into_iter().map(TcpInfo)).collect())
}

/// Asks for a structure of at most `N` bytes for every subflow (struct mptcp_subflow_data).
fn array<const N: usize>(socket: impl AsFd, option: i32) -> io::Result<Vec<[u8; N]>> {
    const HEAD: usize = 16;
    let mut answer = vec![0; HEAD + SUBFLOWS * N];
    answer[0..4].copy_from_slice(&(HEAD as u32).to_ne_bytes());
    answer[12..16].copy_from_slice(&(N as u32).to_ne_bytes());
    socket_option(socket, SOL_MPTCP, option, &mut answer)?;
    let word = |at: usize| {
        u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]])
    };
    let (count, size) = (word(4) as usize, (word(12) as usize).clamp(1, N));
    let entries = answer[HEAD..].chunks_exact(size).take(count);
    let entry = |bytes: &[u8]| {
        let mut entry = [0; N];
        entry[..size].copy_from_slice(bytes);
        entry
    };
    Ok(entries.map(entry).collect())
}

/// Bytes of a connection of Multipath TCP that were acknowledged (struct mptcp_info).
pub(crate) fn acknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut info = TcpInfo([0; ROOM]);
    let len = socket_option(socket, SOL_MPTCP, MPTCP_INFO, &mut info.0)?;
    // bytes_acked is there since Linux 6.5; before it, the data sequence number tells it.
    Ok(if len >= 80 { info.u64(72) } else { info.u64(24) })
}
