/* The version that each dict has up to 3.13. Included by py3xx/internals.h after gd_dict_is_tagged. */
#ifndef GD_PYCOMMON_MA_VERSION_H
#define GD_PYCOMMON_MA_VERSION_H

/* Returns the version of the dict's current state, or a new number if it has no versions. */
static inline uint64_t
gd_dict_version(PyObject *dict)
{
    return GD_LIKELY(gd_dict_is_tagged(dict)) ? ((PyDictObject *)dict)->ma_version_tag : gd_dict_no_tag();
}

/* Returns the address of the version of a dict that has one. */
static inline const void *
gd_dict_version_place(PyObject *dict)
{
    return &((PyDictObject *)dict)->ma_version_tag;
}

/* Prepares versions of dicts: nothing, since CPython keeps them itself. */
#define gd_dict_versions_init() 0

#endif
