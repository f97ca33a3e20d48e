//! Files that are written completely or not at all.
//!
//! A file is written under another name next to its target, flushed to the disk,
//! and only then renamed. So the target either keeps its old contents or has the
//! complete new ones. Targets that are not regular files (`-`, `/dev/stdout`,
//! pipes, `/dev/null`) are written directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::raw_stdout;
use crate::failure::Failure;

/// The size of the write buffer.
const BUFFER_BYTES: usize = 1 << 16;

/// The maximum number of symbolic links on the way to a target, the same as in
/// Linux.
const MAX_LINKS: usize = 40;

/// The temporary names of files that are being written.
struct UnfinishedFiles(Mutex<Vec<PathBuf>>);

/// A lock under which no file is begun, renamed or removed by another thread.
pub(crate) type UnfinishedLock = MutexGuard<'static, Vec<PathBuf>>;

/// The unfinished files of this process.
static UNFINISHED: UnfinishedFiles = UnfinishedFiles(Mutex::new(Vec::new()));

impl UnfinishedFiles {
    fn lock(&'static self) -> UnfinishedLock {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_all(&'static self) -> UnfinishedLock {
        let mut places = self.lock();
        for place in places.drain(..) {
            let _ = fs::remove_file(place);
        }
        places
    }
}

/// Removes all unfinished files before the program exits. The caller holds the
/// returned lock until the exit, so that no other file is begun.
#[must_use = "another thread can begin a file once the lock is released"]
pub(crate) fn remove_unfinished() -> UnfinishedLock {
    UNFINISHED.remove_all()
}

/// True if a path stands for standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// True if two paths lead to one regular file. `-` leads to none.
pub fn is_same_file(first: &Path, second: &Path) -> bool {
    let identity = |path: &Path| {
        let is_regular = |metadata: &fs::Metadata| metadata.is_file() && !is_dash(path);
        let metadata = fs::metadata(path).ok().filter(is_regular)?;
        Some((metadata.dev(), metadata.ino()))
    };
    identity(first).is_some_and(|first| Some(first) == identity(second))
}

/// A reason why a file was not written.
pub enum WriteFailure {
    /// The stream failed.
    Io(io::Error),
    /// Any other failure.
    Other(Failure),
}

impl From<io::Error> for WriteFailure {
    fn from(error: io::Error) -> WriteFailure {
        WriteFailure::Io(error)
    }
}

/// Writes a complete file, or standard output for `-`.
pub fn to_file<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, WriteFailure>,
) -> Result<T, Failure> {
    if is_dash(path) {
        let mut out = raw_stdout();
        let result = write(&mut out);
        let flushed = out.flush();
        return match (result, flushed) {
            (Err(WriteFailure::Other(failure)), _) => Err(failure),
            (Err(WriteFailure::Io(error)), _) | (Ok(_), Err(error)) => Err(Failure::Output(error)),
            (Ok(value), Ok(())) => Ok(value),
        };
    }
    let mut file = WholeFile::create(path)?;
    match write(file.out()) {
        Ok(value) => file.finish().map(|()| value),
        Err(WriteFailure::Io(error)) => Err(Failure::file(path, error)),
        Err(WriteFailure::Other(failure)) => Err(failure),
    }
}

/// A file that replaces its target when it is finished. Dropping it earlier removes
/// the temporary file.
pub struct WholeFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// The temporary file; `None` for targets that are written directly.
    unfinished: Option<Unfinished>,
}

impl WholeFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Failure`] with the file and the reason why it cannot be written.
    pub fn create(path: &Path) -> Result<WholeFile, Failure> {
        let failed = |error| Failure::file(path, error);
        let (file, unfinished) = match regular_target(path).map_err(failed)? {
            None => (File::create(path).map_err(failed)?, None),
            Some(target) => {
                let (file, unfinished) = Unfinished::create(target, &UNFINISHED).map_err(failed)?;
                (file, Some(unfinished))
            }
        };
        Ok(WholeFile {
            path: path.to_owned(),
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            unfinished,
        })
    }

    /// Returns the writer for the contents.
    pub fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Flushes the buffer and renames the file to its target.
    ///
    /// # Errors
    /// [`Failure`] with the file's name; the target keeps its old contents.
    pub fn finish(mut self) -> Result<(), Failure> {
        let done = self
            .out
            .flush()
            .and_then(|()| match self.unfinished.take() {
                None => Ok(()),
                Some(unfinished) => {
                    synced(self.out.get_ref())?;
                    unfinished.rename()
                }
            });
        done.map_err(|error| Failure::file(&self.path, error))
    }
}

/// Waits until a file is on its disk: some file systems report a full disk only
/// then. A file system that cannot sync is not an error.
fn synced(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Returns the regular file that a path leads to, existing or not; `None` for
/// devices, pipes, and the names of open files.
pub(super) fn regular_target(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let of_devices = target.starts_with("/dev") && !target.starts_with("/dev/shm");
        if of_devices || target.starts_with("/proc") {
            return Ok(None);
        }
        let link = match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_symlink() => fs::read_link(&target)?,
            Ok(metadata) => return Ok(metadata.is_file().then_some(target)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(target)),
            Err(error) => return Err(error),
        };
        target = match target.parent() {
            Some(folder) => folder.join(link),
            None => link,
        };
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A file under its temporary name, removed unless it is renamed.
struct Unfinished {
    place: PathBuf,
    target: PathBuf,
    list: &'static UnfinishedFiles,
}

impl Unfinished {
    fn create(target: PathBuf, list: &'static UnfinishedFiles) -> io::Result<(File, Unfinished)> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let temporary_path = target.with_file_name(name);
        let create = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&temporary_path)
        };
        // An interrupt removes the files in the list, so the file is created and
        // listed under one lock.
        let mut places = list.lock();
        let file = match create() {
            // Left by a killed process that had the same process id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&temporary_path)?;
                create()?
            }
            other => other?,
        };
        places.push(temporary_path.clone());
        drop(places);
        let unfinished = Unfinished {
            place: temporary_path,
            target,
            list,
        };
        if let Ok(before) = fs::metadata(&unfinished.target) {
            file.set_permissions(before.permissions())?;
        }
        Ok((file, unfinished))
    }

    fn rename(self) -> io::Result<()> {
        let _places = self.list.lock();
        fs::rename(&self.place, &self.target)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut places = self.list.lock();
        // After the rename the temporary name no longer exists.
        let _ = fs::remove_file(&self.place);
        places.retain(|place| *place != self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    /// Creates an empty folder for one test.
    fn folder(name: &str) -> PathBuf {
        let name = format!("classyard-whole-file-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_target_is_what_it_was_until_the_file_is_finished() {
        let folder = folder("target");
        let path = folder.join("report");
        fs::write(&path, "before").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.out().write_all(b"after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        let dropped = WholeFile::create(&path).unwrap();
        assert_eq!(names(&folder).len(), 2);
        drop(dropped);
        assert_eq!(names(&folder), ["report"]);
        let failed = to_file(&path, |out| -> Result<(), WriteFailure> {
            out.write_all(b"half")?;
            Err(WriteFailure::Io(io::Error::other("the disk is full")))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(names(&folder), ["report"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_stay_and_permissions_too() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = folder("links");
        fs::create_dir(folder.join("deep")).unwrap();
        let (path, link) = (folder.join("deep/report"), folder.join("link"));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("deep/report", &link).unwrap();
        let written = to_file(&link, |out| Ok(out.write_all(b"after")?));
        assert!(written.is_ok());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"after");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        symlink("loop", folder.join("loop")).unwrap();
        assert!(WholeFile::create(&folder.join("loop")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn devices_and_open_files_are_written_directly() {
        for path in ["/dev/null", "/dev/stdout", "/proc/self/fd/1", "/dev/full"] {
            assert_eq!(regular_target(Path::new(path)).unwrap(), None, "{path}");
        }
        let file = WholeFile::create(Path::new("/dev/null")).unwrap();
        assert!(file.unfinished.is_none());
        assert!(file.finish().is_ok());
        assert!(WholeFile::create(Path::new("/nowhere/at/all")).is_err());
        assert!(WholeFile::create(&std::env::temp_dir()).is_err());
    }

    /// Files are begun by one thread while another removes all of them.
    #[test]
    fn no_unfinished_file_escapes_a_removal() {
        static LIST: UnfinishedFiles = UnfinishedFiles(Mutex::new(Vec::new()));
        const REMOVALS: usize = 300;
        let folder = folder("removal");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let path = folder.join("report");
                    // The file may be removed before its permissions are set.
                    if let Ok((_, unfinished)) = Unfinished::create(path, &LIST) {
                        std::mem::forget(unfinished);
                    }
                }
            });
            let escaped = (0..REMOVALS).find(|_| {
                std::thread::sleep(Duration::from_micros(50));
                let _places = LIST.remove_all();
                !names(&folder).is_empty()
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(escaped, None, "the removal after which a file was left");
        });
        fs::remove_dir_all(folder).unwrap();
    }
}
