/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Loads the library of the software device. It is separate, so that a program for cards contains
 * neither the device nor ethdev.
 *
 * The first open of a software device loads it from the folder of this library, or from the folder
 * in BB_DRIVER_PATH. The library needs a symbol of this library's private version node. The node's
 * name includes the release, so the dynamic linker refuses a library of another release.
 */
#define _GNU_SOURCE /* dladdr(), faccessat() with AT_EACCESS, secure_getenv() */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx5.h"

#define SOFT_LIBRARY "libbluebell-soft.so.0"

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Writes the path of the library to @path. Returns -ENOENT if this code is not in libbluebell.so,
 * because a statically linked program cannot load drivers.
 */
static int
soft_path(char *path, size_t size)
{
	const char *folder = secure_getenv("BB_DRIVER_PATH"), *file;
	Dl_info own;
	int n;

	if (dladdr((const void *)mlx5_soft_load, &own) == 0 || own.dli_fname == NULL)
		return -ENOENT;
	file = strrchr(own.dli_fname, '/');
	if (file == NULL || strncmp(file + 1, "libbluebell.so", strlen("libbluebell.so")) != 0)
		return -ENOENT;
	if (folder != NULL && folder[0] != '\0')
		n = snprintf(path, size, "%s/%s", folder, SOFT_LIBRARY);
	else
		n = snprintf(path, size, "%.*s/%s", (int)(file - own.dli_fname), own.dli_fname,
			     SOFT_LIBRARY);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool
mlx5_soft_is_installed(void)
{
	char path[PATH_MAX];

	return soft_path(path, sizeof(path)) == 0 &&
	       faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
}

/* Loads the library at @path. The caller holds load_lock. */
static int
load(const char *name, const char *path)
{
	unsigned int before = mlx5_cmd_count();
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		const char *cause = dlerror();
		size_t len = strlen(path);

		/*
		 * The text of dlerror() is "PATH: cause". If the fault is in another file, the text
		 * is only "cause".
		 */
		if (strncmp(cause, path, len) == 0 && strncmp(cause + len, ": ", 2) == 0)
			cause += len + 2;
		BB_LOG(ERR,
		       "%s: cannot load the software device from %s: %s: install the "
		       "libbluebell-soft of this release, or set BB_DRIVER_PATH to its folder",
		       name, path, cause);
		return -ELIBACC;
	}
	if (mlx5_cmd_is_registered(MLX5_SOFT))
		return 0; /* the library stays loaded */
	/*
	 * If the library has registered a command interface other than MLX5_SOFT, the table of
	 * interfaces refers to code in the library, so the library must stay loaded.
	 */
	if (mlx5_cmd_count() == before)
		dlclose(library);
	BB_LOG(ERR,
	       "%s: %s is not the software device of this libbluebell: install the "
	       "libbluebell-soft of this release, or set BB_DRIVER_PATH to its folder",
	       name, path);
	return -ELIBBAD;
}

int
mlx5_soft_load(const char *name)
{
	char path[PATH_MAX];
	int ret = soft_path(path, sizeof(path));

	if (ret == -ENOENT) {
		BB_LOG(ERR,
		       "%s: this program is linked with the archive libbluebell.a and without the "
		       "software device: add bluebell-soft to the packages of pkg-config --static",
		       name);
		return -ELIBACC;
	}
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot load the software device: the path of " SOFT_LIBRARY
		       " has more than %d bytes: set BB_DRIVER_PATH to a folder with a shorter "
		       "path",
		       name, PATH_MAX - 1);
		return ret;
	}
	pthread_mutex_lock(&load_lock);
	if (!mlx5_cmd_is_registered(MLX5_SOFT))
		ret = load(name, path);
	pthread_mutex_unlock(&load_lock);
	return ret;
}
