package volume

import (
	"fmt"

	"serpcrypt/volume/luks2"
)

func (c *luks2Container) mend(func(*FormatError) bool) (mended []string, commit func() error, err error) {
	if err := c.validate(); err != nil {
		return nil, nil, err
	}
	for i, found := range c.copies {
		if found.Fault != nil || found.Stale {
			mended = append(mended, fmt.Sprintf("%s copy of the header at byte %d: written again from the other one", copyNames[i], found.Offset))
		}
	}
	return mended, func() error { return c.change(func(*luks2.Header) error { return nil }) }, nil
}
