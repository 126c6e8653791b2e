// What the C libraries are.
#include <stdint.h>

// gcrypt_start readies the library and returns its version.
const char *gcrypt_start(void);
const char *openssl_version(void);
int nettle_major(void);
int nettle_minor(void);
