//! Objects that C holds as pointers.
//!
//! A map has the address and type of every live object. With the map, functions recognise a
//! null pointer, an object of another type, and an object that was freed. They do not read its
//! memory. Lookups do not take the lock of the map: they trust the pointer, except
//! for null and for a number at the start of the object.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::status::{Fault, Status};

/// The live objects: address and type.
static LIVE: Mutex<BTreeMap<usize, TypeId>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<usize, TypeId>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of an object of a type in messages.
fn name<T>() -> String {
    let name = type_name::<T>();
    name.rsplit("::").next().unwrap_or(name).to_lowercase()
}

fn null<T>() -> Fault {
    Fault::new(
        Status::NullPointer,
        format!("the {} is a null pointer", name::<T>()),
    )
}

/// Moves an object to the heap, for C.
pub(crate) fn give<T: 'static>(object: T) -> *mut T {
    let pointer = Box::into_raw(Box::new(object));
    live().insert(pointer as usize, TypeId::of::<T>());
    pointer
}

/// Moves an object to `place`.
///
/// # Safety
/// `place` is null or points to a pointer that may be written.
pub(crate) unsafe fn give_to<T: 'static>(place: *mut *mut T, object: T) -> Result<(), Fault> {
    if place.is_null() {
        return Err(Fault::new(
            Status::NullPointer,
            format!("the place for the {} is a null pointer", name::<T>()),
        ));
    }
    // SAFETY: not null, so the caller promises that it may be written.
    unsafe { *place = give(object) };
    Ok(())
}

fn check<T: 'static>(pointer: *const T) -> Result<(), Fault> {
    if pointer.is_null() {
        return Err(null::<T>());
    }
    let object_type = live().get(&(pointer as usize)).copied();
    match object_type {
        Some(found) if found == TypeId::of::<T>() => Ok(()),
        _ => Err(Fault::new(
            Status::InvalidHandle,
            format!("the pointer is no {}, or it was freed", name::<T>()),
        )),
    }
}

/// Borrows an object.
///
/// # Safety
/// No other thread frees or changes the object during the call.
pub(crate) unsafe fn borrow<'a, T: 'static>(pointer: *const T) -> Result<&'a T, Fault> {
    check(pointer)?;
    // SAFETY: the object is live, and the caller promises that it stays so, unchanged.
    Ok(unsafe { &*pointer })
}

/// Borrows an object for changes.
///
/// # Safety
/// No other thread uses the object during the call.
pub(crate) unsafe fn borrow_mut<'a, T: 'static>(pointer: *mut T) -> Result<&'a mut T, Fault> {
    check(pointer)?;
    // SAFETY: the object is live, and the caller promises that nobody else uses it.
    Ok(unsafe { &mut *pointer })
}

/// Takes an object back from C, to drop it. Null is accepted, as in `free`.
///
/// # Safety
/// No other thread uses the object during the call or later.
pub(crate) unsafe fn take<T: 'static>(pointer: *mut T) -> Result<Option<Box<T>>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    check(pointer)?;
    live().remove(&(pointer as usize));
    // SAFETY: `give` made it from a box, and its address was in the map until now, so it was
    // not taken back before.
    Ok(Some(unsafe { Box::from_raw(pointer) }))
}
