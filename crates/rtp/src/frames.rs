//! The frames of a flow, which both ends record.

use dumbbell_sim::FrameRow;
use dumbbell_units::Time;
use std::sync::{Arc, Mutex, MutexGuard};

/// A frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    captured_at: Time,
    bytes: u32,
    completed_at: Option<Time>,
}

/// The frames of a flow by number. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames(Arc<Mutex<Vec<Frame>>>);

impl Frames {
    fn all(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.0.lock().expect("no code panics while it holds the frames")
    }

    /// Records a frame; returns its number.
    pub(crate) fn captured(&self, captured_at: Time, bytes: u32) -> u32 {
        let mut all = self.all();
        all.push(Frame { captured_at, bytes, completed_at: None });
        all.len() as u32 - 1
    }

    /// Records that all packets of a frame have arrived.
    pub(crate) fn completed(&self, frame: u32, at: Time) {
        if let Some(frame) = self.all().get_mut(frame as usize) {
            frame.completed_at.get_or_insert(at);
        }
    }

    /// A row for each frame; the flow is left at 0.
    pub(crate) fn rows(&self, push: &mut dyn FnMut(FrameRow)) {
        for frame in self.all().iter() {
            push(FrameRow {
                flow: 0,
                start: frame.captured_at.as_secs_f64(),
                bytes: u64::from(frame.bytes),
                completed: frame.completed_at.map(Time::as_secs_f64),
            });
        }
    }
}
