#include <gcrypt.h>
#include <nettle/version.h>
#include <openssl/crypto.h>

#include "libraries.h"

const char *gcrypt_start(void)
{
	const char *version = gcry_check_version(NULL);

	// Locked memory is scarce and makes no difference to the speed.
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
	return version;
}

const char *openssl_version(void) { return OpenSSL_version(OPENSSL_VERSION); }

int nettle_major(void) { return nettle_version_major(); }

int nettle_minor(void) { return nettle_version_minor(); }
