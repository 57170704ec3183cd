//! A guard against SIGBUS, so that an unreadable page of a map causes an error instead of ending the process.
//!
//! A page of a map is unreadable if the file was truncated, if the disk fails, or if a full in-memory file system cannot
//! allocate a page for a hole. The operating system reports this only by SIGBUS, which by default ends the process. A
//! program that must survive SIGBUS calls [`install`] once. The handler replaces the unreadable page by zeros, marks
//! the map as lost, and returns. Readers check this mark (`View::is_lost`) after reading bytes and before using them.
//! So queries of a segment with a lost map fail with [`Error::Io`](crate::Error::Io) until the index is opened again.
//! Other segments are not affected. For a SIGBUS outside of guarded maps, the handler calls the previously installed
//! one.
//!
//! The library does not install the handler by itself, because signal handlers belong to the program; the command
//! `twindex` installs it. A guard costs one registration per map and one check per query.
//! [`Access::Read`](super::Access::Read) needs no guard, because it uses no maps.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Maximum number of guarded maps. Further maps are not guarded.
const SLOTS: usize = 4096;
/// The value of `start` while a slot is being filled. No map starts at this address.
const CLAIMED: usize = 1;

/// A slot for a guarded map. It is free if `start` is 0.
struct GuardSlot {
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

static MAPS: [GuardSlot; SLOTS] = [const {
    GuardSlot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; SLOTS];
/// The action for SIGBUS that the handler replaced. Set once before the handler is installed, and never cleared.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// Whether a page of any guarded map was unreadable, even if the map has been closed since.
static LOST: AtomicBool = AtomicBool::new(false);
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// Whether the handler is installed. Maps are registered only if it is.
static INSTALLED: AtomicBool = AtomicBool::new(false);
static INSTALLING: Mutex<()> = Mutex::new(());

/// Installs the handler, which guards all maps that this process creates from then on. Further calls have no effect.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// twindex::sys::guard::install()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// I/O errors of the operating system.
#[allow(unsafe_code, reason = "handlers of signals are the operating system's; see the SAFETY notes")]
pub fn install() -> io::Result<()> {
    let _installing = INSTALLING.lock();
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: The call only returns a number, and accesses no memory of this process.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
    PAGE.store(page, Ordering::Release);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: With a null action the call only writes the current action to `before`, which has the size of its type.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: Zeros are a valid value of this plain C structure, and the call above succeeded and filled it.
    let before = unsafe { before.assume_init() };
    // Store the previous action before installing the handler, which reads it.
    let _ = BEFORE.set(before);
    // SAFETY: Zeros are valid as above. The handler is a function of the type that `SA_SIGINFO` requires.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = on_bus_error as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is initialized and outlives the call. The SAFETY notes of `on_bus_error` justify the handler.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// Returns true if any page of a guarded map was unreadable. A program can check this after printing its results,
/// before it exits.
#[must_use]
pub fn anything_lost() -> bool {
    LOST.load(Ordering::Acquire)
}

/// Returns the slot of the map that contains `address`, and the end address of the map.
fn slot_of(address: usize) -> Option<(&'static GuardSlot, usize)> {
    MAPS.iter().find_map(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        // If another thread has reused the slot in the meantime, `start` has changed.
        let is_it = start > CLAIMED
            && start <= address
            && address < end
            && slot.start.load(Ordering::Acquire) == start;
        is_it.then_some((slot, end))
    })
}

/// The signal handler. The operating system calls it in the thread that accessed the page, at any instruction. So it
/// only uses atomic numbers and system calls, takes no lock and allocates no memory.
#[allow(
    unsafe_code,
    reason = "the operating system calls this, and is asked for a page; see the SAFETY notes"
)]
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: The system passes a valid `info` to a handler with `SA_SIGINFO`.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: `info` is valid as above. A SIGBUS that was not sent by a process has an address.
    let address = if is_sent { 0 } else { unsafe { (*info).si_addr() as usize } };
    if let Some((slot, end)) = slot_of(address) {
        // Set the mark before replacing the page, so that no thread reads zeros from a map that is not marked.
        slot.lost.store(true, Ordering::SeqCst);
        LOST.store(true, Ordering::SeqCst);
        let start = address & !(page - 1);
        // SAFETY: `errno` belongs to this thread. It is restored below, as the interrupted code may be about to read
        // it.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: The page lies within a map registered by a `GuardRegistration`: map and slot begin at a page
        // boundary, and the slot contains this address. The map is a read-only map of this crate, and it is alive: the
        // thread that touched it holds it, and a slot is freed before its map. This page and all later pages of the map
        // are replaced by readable zeros at the same address, so every reference into the map stays valid; file bytes
        // are only read as `[u8]` that may change at any time. All these pages are replaced at once, because after a
        // truncation all following pages are lost too, and the number of maps of a process is limited.
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
        // SAFETY: `errno` belongs to this thread, as above.
        unsafe { *libc::__errno_location() = errno };
        if zeros != libc::MAP_FAILED {
            return; // the instruction runs again and reads zeros
        }
    }
    // The address is not in a guarded map, or its page could not be replaced: call the previous handler.
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        // A process sent the signal, and the previous action was to ignore it.
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: The call restores the default action, which ends the process when the instruction runs again.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if is_sent {
                // SAFETY: The call sends this thread a signal, which stays pending until this handler returns.
                unsafe { libc::raise(signal) };
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: This was installed as a handler with `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: This was installed as a handler without `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// The registration of a guarded map. It must be dropped before the map.
#[derive(Debug)]
pub(crate) struct GuardRegistration(usize);

impl GuardRegistration {
    /// Registers a map. Returns `None` if the handler is not installed or no slot is free.
    pub(super) fn new(map: &[u8]) -> Option<Self> {
        // guard: maps are noted for the handler of SIGBUS
        // without it: return None;
        if !INSTALLED.load(Ordering::Acquire) {
            return None;
        }
        let start = map.as_ptr() as usize;
        let free = |slot: &GuardSlot| {
            slot.start.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = MAPS.iter().position(free)?;
        let slot = &MAPS[place];
        slot.lost.store(false, Ordering::Relaxed);
        // The end of the file's bytes in the map. The rest of the last page contains readable zeros.
        slot.end.store(start + map.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self(place))
    }

    /// Returns true if any page of the map was unreadable.
    pub(super) fn is_lost(&self) -> bool {
        MAPS[self.0].lost.load(Ordering::Acquire)
    }
}

impl Drop for GuardRegistration {
    fn drop(&mut self) {
        MAPS[self.0].start.store(0, Ordering::Release);
    }
}
