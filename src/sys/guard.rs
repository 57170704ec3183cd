//! A guard against SIGBUS: where a page of a map cannot be read, an error and not the end of the process.
//!
//! Three things make a page of a map unreadable: the file was cut short by somebody, the disk fails, or there is no
//! room for a hole of a full file system in memory. The operating system has no other way to say so than SIGBUS, whose
//! usual end is that of the process. A program that wants to go on can ask for a handler, once, by [`install`]: it puts
//! a page of zeros in the place of the one that cannot be read, notes that this map is lost, and returns. Whoever reads
//! looks at the note when he is done and before he believes what he read (`View::is_lost`), so that a question about a
//! lost segment is [`Error::Io`](crate::Error::Io), from then on and until the index is opened again; other segments,
//! and what this handler does not know, are as before: a SIGBUS from elsewhere goes to the handler that was there
//! before.
//!
//! The library never installs it by itself, as handlers of signals belong to the program. The command `twindex` does.
//! It costs a note at the opening and a look at it for each question. [`Access::Read`](super::Access::Read) is the
//! other way, without maps.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Maps that can be guarded at a time; those beyond are as if nobody had asked.
const SLOTS: usize = 4096;
/// A slot that is being filled. No map begins here.
const CLAIMED: usize = 1;

/// A map that is guarded. Free while `start` is 0.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

static MAPS: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        SLOTS];
/// Set for good before the handler can be called.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// Of any map that there was.
static LOST: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// True once the handler stands; maps are noted from then on.
static INSTALLED: AtomicBool = AtomicBool::new(false);
static INSTALLING: Mutex<()> = Mutex::new(());

/// Asks for maps that are made from now on to be guarded, in this process and for good. A second time changes nothing.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// twindex::sys::guard::install()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The operating system's.
#[allow(unsafe_code, reason = "handlers of signals are the operating system's; see the SAFETY notes")]
pub fn install() -> io::Result<()> {
    let _installing = INSTALLING.lock();
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: asks for a number, and touches no memory of ours.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
    PAGE.store(page, Ordering::Release);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null action it only writes the present one to `before`, which is as large as it says.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeros are a valid value of this plain structure of C, and the call above has succeeded and filled it.
    let before = unsafe { before.assume_init() };
    // Known before the handler can be called.
    let _ = BEFORE.set(before);
    // SAFETY: as above for the zeros. The handler is a function of the type that `SA_SIGINFO` asks for.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is filled and outlives the call; what the handler does is told there.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// True once a page of any guarded map could not be read: a program that prints what it found may look at it at its
/// end.
#[must_use]
pub fn anything_lost() -> bool {
    LOST.load(Ordering::Acquire)
}

/// The slot of the map that has this address, and the map's end.
fn slot_of(address: usize) -> Option<(&'static Slot, usize)> {
    MAPS.iter().find_map(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        // A slot that goes from one map to another in between has another start, or is claimed.
        let is_it = start > CLAIMED
            && start <= address
            && address < end
            && slot.start.load(Ordering::Acquire) == start;
        is_it.then_some((slot, end))
    })
}

/// Called by the operating system in the thread that touched the page, between any two of its instructions: so it does
/// nothing but load and store atomic numbers and call the system, takes no lock and allocates nothing.
#[allow(
    unsafe_code,
    reason = "the operating system calls this, and is asked for a page; see the SAFETY notes"
)]
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: for a handler with `SA_SIGINFO` the system passes a valid `info`.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: as above; a SIGBUS that no process has sent has an address.
    let address = if is_sent { 0 } else { unsafe { (*info).si_addr() as usize } };
    if let Some((slot, end)) = slot_of(address) {
        // First the note: another thread must not read zeros and find no note.
        slot.lost.store(true, Ordering::SeqCst);
        LOST.store(true, Ordering::SeqCst);
        let start = address & !(page - 1);
        // SAFETY: errno is this thread's own; it is put back, as the interrupted code may be about to look at it.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: the page lies within a map that `Guarded` notes, as both begin at a page and the slot has this
        // address: it is a read-only map of ours that is alive, as the thread that touched it holds it (and a slot is
        // freed before its map is). It and the pages behind it, to the map's last, are replaced by readable zeros in
        // the same place, so that every reference into the map stays valid; bytes of files are only ever read as
        // `[u8]` that anything may have changed. All of them at once, as what is behind the cut of a file is lost
        // too, and the system has only so many maps for a process.
        let zeros = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                (end - start).next_multiple_of(page),
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        if zeros != libc::MAP_FAILED {
            return; // the instruction is tried again, and reads zeros
        }
    }
    // Not of ours: what would have been called without us.
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        // Sent by a process, to be ignored as before.
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: gives the signal its usual end, which comes when the instruction is tried again.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if is_sent {
                // SAFETY: sends this thread a signal, which is held back until this handler returns.
                unsafe { libc::raise(signal) };
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the system had this as a handler with `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the system had this as a handler without `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// The note that a map is guarded; it must go before the map does.
#[derive(Debug)]
pub(crate) struct Guarded(usize);

impl Guarded {
    /// Notes a map; `None` where nobody asked for it, or no slot is free.
    pub(super) fn new(map: &[u8]) -> Option<Self> {
        // guard: maps are noted for the handler of SIGBUS
        // without it: return None;
        if !INSTALLED.load(Ordering::Acquire) {
            return None;
        }
        let start = map.as_ptr() as usize;
        let free = |slot: &Slot| {
            slot.start.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = MAPS.iter().position(free)?;
        let slot = &MAPS[place];
        slot.lost.store(false, Ordering::Relaxed);
        // To the end of its last page, which can be read and is zeros after the file.
        slot.end.store(start + map.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self(place))
    }

    /// True once a page of the map could not be read.
    pub(super) fn is_lost(&self) -> bool {
        MAPS[self.0].lost.load(Ordering::Acquire)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        MAPS[self.0].start.store(0, Ordering::Release);
    }
}
